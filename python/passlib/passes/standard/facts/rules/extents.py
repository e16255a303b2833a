"""Dimensions of results, computed from those of the inputs where ONNX's inference gives up."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from passlib._core import EditableNode
from passlib.passes.standard.facts.known import (
    Known,
    Quantity,
    Size,
    at_least,
    product,
    quotient,
    registering,
)
from passlib.passes.standard.facts.nodes import (
    given,
    integer,
    integers,
    is_old_broadcast,
    operator,
    text,
)
from passlib.passes.standard.facts.rules.contents import axes_of, whole

Extents = tuple[Quantity | None, ...]
Rule = Callable[[EditableNode, Known], Extents | None]

extent_rules: dict[str, Rule] = {}
extent_rule = registering(extent_rules)
"""Registers a function that returns the sizes of the first result of operators."""

_LAST = 1 << 31
"""Ends of slices from here on mean the end of the axis."""


def broadcast(left: Extents, right: Extents) -> Extents:
    """Return the broadcast shape; None for a dimension that depends on open ones."""
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    return tuple(_common(a, b) for a, b in pairs)


def _common(left: Quantity | None, right: Quantity | None) -> Quantity | None:
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    return next((size for size in (left, right) if isinstance(size, int)), None)


@extent_rule(
    "Add", "Sub", "Mul", "Div", "Pow", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
    "And", "Or", "Xor", "Mod", "PRelu", "Where", "Max", "Min", "Sum", "Mean", "BitShift",
)  # fmt: skip
def _elementwise(node: EditableNode, known: Known) -> Extents | None:
    if is_old_broadcast(node):
        return None
    total: Extents = ()
    for value in node.inputs:
        shape = known.shape(value)
        if shape is None:
            return None
        total = broadcast(total, shape)
    return total


@extent_rule("Reshape")
def _reshape(node: EditableNode, known: Known) -> Extents | None:
    shape, target = known.shape(node.inputs[0]), known.content(given(node, 1))
    if shape is None or target is None or target.ndim != 1:
        return None
    sizes: list[Quantity | None] = []
    for axis, wanted in enumerate(target):
        if wanted == 0 and integer(node, "allowzero", 0) != 1:
            if axis >= len(shape):
                return None
            sizes.append(shape[axis])
        elif wanted == -1:
            sizes.append(None)
        elif isinstance(wanted, int) or (
            at_least(wanted, 0) and _is_taken(node, wanted, shape[axis : axis + 1], known)
        ):
            sizes.append(wanted)
        else:
            sizes.append(None)
    if sizes.count(None) == 1 and -1 in list(target):
        others = product([size for size in sizes if size is not None])
        sizes[sizes.index(None)] = quotient(product(shape), others)
    return tuple(sizes)


def _is_taken(
    node: EditableNode, wanted: Quantity, there: tuple[Quantity, ...], known: Known
) -> bool:
    """Whether a Reshape uses an open dimension as it is; 0 would copy the input's."""
    if integer(node, "allowzero", 0) == 1 or known.is_positive(wanted):
        return True
    # The present size is 0 as well if it is a multiple.
    return bool(there) and quotient(there[0], wanted) is not None


@extent_rule("Expand")
def _expand(node: EditableNode, known: Known) -> Extents | None:
    shape, target = known.shape(node.inputs[0]), known.content(node.inputs[1])
    if shape is None or target is None or target.ndim != 1:
        return None
    return broadcast(shape, tuple(target))


@extent_rule("ConstantOfShape")
def _constant(node: EditableNode, known: Known) -> Extents | None:
    target = known.content(node.inputs[0])
    return None if target is None or target.ndim != 1 else tuple(target)


@extent_rule("Tile")
def _tile(node: EditableNode, known: Known) -> Extents | None:
    shape, times = known.shape(node.inputs[0]), known.content(given(node, 1))
    if shape is None or times is None or len(shape) != times.size:
        return None
    return tuple(size * time for size, time in zip(shape, times.flat, strict=True))


@extent_rule("Concat")
def _concat(node: EditableNode, known: Known) -> Extents | None:
    shapes = [known.shape(value) for value in node.inputs]
    if not shapes or any(shape is None for shape in shapes):
        return None
    found = [shape for shape in shapes if shape is not None]
    axis = integer(node, "axis", 1)
    rank = len(found[0])
    if not rank or any(len(shape) != rank for shape in found) or not -rank <= axis < rank:
        return None
    sizes: list[Quantity | None] = [
        _joined([shape[place] for shape in found]) for place in range(rank)
    ]
    total: Quantity = 0
    for shape in found:
        total = total + shape[axis]
    sizes[axis] = total
    return tuple(sizes)


def _joined(sizes: list[Quantity]) -> Quantity | None:
    """Return the dimension of concatenated values; ONNX Runtime ignores empty ones."""
    known = next((size for size in sizes if isinstance(size, int) and size), None)
    return sizes[0] if known is None and (0 not in sizes or set(sizes) == {0}) else known


@extent_rule("Range")
def _range(node: EditableNode, known: Known) -> Extents | None:
    bounds = [known.content(value) for value in node.inputs]
    if any(bound is None or bound.size != 1 for bound in bounds):
        return None
    start, limit, step = (bound.flat[0] for bound in bounds if bound is not None)
    if step != 1 or not at_least(limit - start, 0):
        return None
    return (limit - start,)


@extent_rule("Slice")
def _slice(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    if "starts" in node.attrs:
        starts: list[Quantity] | None = _stated(node, "starts")
        ends = _stated(node, "ends")
        axes, steps = integers(node, "axes"), None
    else:
        starts, ends = (_elements(node, number, known) for number in (1, 2))
        axes, steps = axes_of(node, known, 3), _elements(node, 4, known)
        if (axes is None and given(node, 3)) or (steps is None and given(node, 4)):
            return None
    if starts is None or ends is None:
        return None
    sizes: list[Quantity | None] = list(shape)
    places = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(
        starts, ends, places, steps or [1] * len(starts), strict=False
    ):
        sizes[axis] = _sliced(shape[axis], start, end) if step == 1 else None
    return tuple(sizes)


def _stated(node: EditableNode, key: str) -> list[Quantity] | None:
    found = integers(node, key)
    return None if found is None else list(found)


def _elements(node: EditableNode, number: int, known: Known) -> list[Quantity] | None:
    content = known.content(given(node, number))
    return None if content is None else list(content.flat)


def _sliced(size: Quantity, start: Quantity, end: Quantity) -> Quantity | None:
    """Return the length of a slice with step 1, if certain."""
    first = start + size if isinstance(start, int) and start < 0 else start
    last = end + size if isinstance(end, int) and end < 0 else end
    if (isinstance(last, int) and last >= _LAST) or at_least(last - size, 0):
        last = size
    certain = at_least(first, 0) and at_least(last - first, 0) and at_least(size - last, 0)
    return last - first if certain else None


@extent_rule("Pad")
def _pad(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    pads = integers(node, "pads") or integers(node, "paddings")
    if pads is None and given(node, 1) is not None:
        pads = whole(node.inputs[1], known)
    if shape is None or pads is None or given(node, 3) is not None or len(pads) != 2 * len(shape):
        return None
    rank = len(shape)
    return tuple(size + pads[i] + pads[i + rank] for i, size in enumerate(shape))


@extent_rule("MatMul")
def _matmul(node: EditableNode, known: Known) -> Extents | None:
    left, right = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return None
    return (*broadcast(left[:-2], right[:-2]), left[-2], right[-1])


@extent_rule("Conv", "MaxPool", "AveragePool", "LpPool")
def _windows(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    padding = text(node, "auto_pad", "NOTSET")
    if shape is None or padding not in ("NOTSET", "VALID"):
        return None
    rank = len(shape) - 2
    kernel = integers(node, "kernel_shape")
    channels: Quantity = shape[1] if len(shape) > 1 else 0
    if node.op == "Conv":
        weight = known.shape(node.inputs[1])
        if weight is None or not all(isinstance(size, int) for size in weight):
            return None
        kernel = [int(size) for size in weight[2:] if isinstance(size, int)]
        channels = weight[0]
    if kernel is None or len(kernel) != rank or integer(node, "ceil_mode", 0):
        return None
    pads = (integers(node, "pads") if padding == "NOTSET" else None) or [0] * (2 * rank)
    strides = integers(node, "strides") or [1] * rank
    dilations = integers(node, "dilations") or [1] * rank
    found: list[Quantity] = [shape[0], channels]
    for i in range(rank):
        reach = shape[i + 2] + pads[i] + pads[i + rank] - dilations[i] * (kernel[i] - 1) - 1
        found.append(_count(reach, strides[i]))
    return tuple(found)


def _count(reach: Quantity, stride: int) -> Quantity:
    if isinstance(reach, int):
        return (reach // stride if reach >= 0 else -(-reach // stride)) + 1
    if stride == 1:
        return reach + 1
    # A model whose window does not fit fails, so this is at least 1 wherever it matters.
    return Size.named(f"({reach})/{stride} windows")


@extent_rule(
    "Abs", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip", "Cos", "DequantizeLinear",
    "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid",
    "HardSwish", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "Mish", "Neg",
    "Not", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Softmax", "Softplus", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
def _same(node: EditableNode, known: Known) -> Extents | None:
    return known.shape(node.inputs[0])


@extent_rule("Shape")
def _of_shape(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    return (len(shape[integer(node, "start", 0) : integer(node, "end", len(shape))]),)


@extent_rule("Transpose")
def _transpose(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    order = integers(node, "perm")
    if order is None:
        return shape[::-1]
    return tuple(shape[axis] for axis in order) if len(order) == len(shape) else None


@extent_rule("Gather")
def _gather(node: EditableNode, known: Known) -> Extents | None:
    shape, places = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    axis = _places(shape, [integer(node, "axis", 0)])
    if not shape or places is None or axis is None:
        return None
    return (*shape[: axis[0]], *places, *shape[axis[0] + 1 :])


@extent_rule("Unsqueeze")
def _unsqueeze(node: EditableNode, known: Known) -> Extents | None:
    shape, axes = known.shape(node.inputs[0]), axes_of(node, known)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    added = {axis + rank if axis < 0 else axis for axis in axes}
    rest = iter(shape)
    if len(added) != len(axes) or not added.issubset(range(rank)):
        return None
    return tuple(1 if axis in added else next(rest) for axis in range(rank))


@extent_rule("Squeeze")
def _squeeze(node: EditableNode, known: Known) -> Extents | None:
    shape, axes = known.shape(node.inputs[0]), axes_of(node, known)
    gone = _places(shape, axes)
    if shape is None or not gone:  # without axes, those of size 1 go
        return None
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


@extent_rule(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def _reduce(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    axes = axes_of(node, known)
    if not axes:
        if given(node, 1) is not None and axes is None:
            return None
        if integer(node, "noop_with_empty_axes", 0) == 1:
            return shape
        axes = list(range(len(shape)))
    gone = _places(shape, axes)
    if gone is None:
        return None
    if integer(node, "keepdims", 1) == 1:
        return tuple(1 if axis in gone else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


@extent_rule("Flatten")
def _flatten(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    axis = integer(node, "axis", 1)
    if shape is None or not -len(shape) <= axis <= len(shape):
        return None
    place = axis + len(shape) if axis < 0 else axis
    return product(shape[:place]), product(shape[place:])


@extent_rule("Gemm")
def _gemm(node: EditableNode, known: Known) -> Extents | None:
    left, right = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return None
    return left[bool(integer(node, "transA", 0))], right[not integer(node, "transB", 0)]


def _places(shape: Extents | None, axes: list[int] | None) -> list[int] | None:
    """Return non-negative axes; None if unknown or out of range."""
    if shape is None or axes is None:
        return None
    rank = len(shape)
    if not all(-rank <= axis < rank for axis in axes):
        return None
    return [axis % rank for axis in axes]


def needed_names(node: EditableNode, known: Known) -> Iterator[str]:
    """Iterate over the names of dimensions for which 0 makes a node fail.

    A Reshape fails that would copy a dimension from a missing axis, and a Gather from an empty one.
    """
    name = operator(node)
    if name not in ("Reshape", "Gather"):
        return
    shape = known.shape(node.inputs[0])
    if shape is None:
        return
    if name == "Gather":
        places = whole(node.inputs[1], known)
        if shape and places:
            yield from _named(shape[integer(node, "axis", 0) % len(shape)])
        return
    target = known.content(given(node, 1))
    if target is None or integer(node, "allowzero", 0):
        return
    for size in list(target.flat)[len(shape) :]:
        yield from _named(size)


def _named(size: Quantity) -> tuple[str, ...]:
    """Return the name of a dimension that is only a name."""
    if isinstance(size, int) or len(size.terms) != 1:
        return ()
    names, factor = size.terms[0]
    return names if factor == 1 and len(names) == 1 else ()
