"""Values whose types ONNX's inference gets wrong, with the types that ONNX Runtime computes.

The shapes are established by the sweep of tests/support/shape_sweep.py with onnx 1.23 and ONNX
Runtime 1.32; the cases that differ stand in tests/data/onnx/shapes.jsonl.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, graphs_within, value_info
from passlib.dialects.onnx.reading import EXTERNAL
from passlib.files.optional import require

Dim = int | str | None
"""A dimension: its size, its name, or None if it is not known."""

Dims = tuple[Dim, ...]

Shapes = dict[int, Dims | None]
"""Shapes by the number of the output, None for an unknown rank; others are as inferred."""


class Operation(NamedTuple):
    """A node as rules see it.

    Attributes
    ----------
    version : int
        The operator set.
    attributes : mapping of str to object
    given : sequence of bool
        Whether inputs are there.
    shapes : sequence of tuple or None
        Of the inputs, None for unknown ones.
    arrays : sequence of numpy.ndarray or None
        Inputs that are constants.
    outputs : int
        Their number.
    """

    version: int
    attributes: Mapping[str, Any]
    given: Sequence[bool]
    shapes: Sequence[Dims | None]
    arrays: Sequence[np.ndarray[Any, Any] | None]
    outputs: int

    def has(self, place: int) -> bool:
        """Whether an input is there."""
        return place < len(self.given) and self.given[place]

    def integer(self, name: str, preset: int = 0) -> int:
        """Return an attribute that is an integer."""
        return int(self.attributes.get(name, preset))

    def shape(self, place: int) -> Dims | None:
        """Return the shape of an input."""
        return self.shapes[place] if place < len(self.shapes) else None

    def array(self, place: int) -> np.ndarray[Any, Any] | None:
        """Return the elements of an input that is a constant."""
        return self.arrays[place] if place < len(self.arrays) else None

    def listed(self, name: str, place: int) -> list[int] | None:
        """Return a list that is an attribute or an input; None if it is neither or computed."""
        if name in self.attributes:
            return list(self.attributes[name])
        array = self.array(place)
        return None if array is None else [int(item) for item in array.reshape(-1)]


Rule = Callable[[Operation], Shapes]

rules: dict[str, Rule] = {}
"""By operator of ONNX's own set: what ONNX Runtime computes if ONNX's inference may differ."""


TYPED_BY: Final = {"RMSNormalization": 1}
"""By operator: the input whose element type the first output has, if not the first one."""


def _rule(*names: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        rules.update(dict.fromkeys(names, rule))
        return rule

    return register


@_rule("AveragePool", "LpPool", "MaxPool")
def _pool(op: Operation) -> Shapes:
    shape, kernel = op.shape(0), op.attributes.get("kernel_shape", ())
    rank, padding = len(kernel), op.attributes.get("auto_pad", b"NOTSET")
    pads = op.attributes.get("pads") or [0] * (2 * rank)
    strides = op.attributes.get("strides") or [1] * rank
    dilations = op.attributes.get("dilations") or [1] * rank
    rounding = op.integer("ceil_mode")
    is_same = padding in _SAME and set(dilations) != {1}
    if shape is None or not (
        rounding or is_same or (padding != b"NOTSET" and "pads" in op.attributes)
    ):
        return {}
    lengths = (len(shape) - 2, len(strides), len(dilations), len(pads) / 2)
    if any(length != rank for length in lengths):
        return dict.fromkeys(range(op.outputs))
    windows: list[Dim] = []
    for i, size in enumerate(shape[2:]):
        if not isinstance(size, int) or strides[i] < 1:
            windows.append(None)
            continue
        head, tail = pads[i], pads[i + rank]
        if padding == b"VALID":
            head = tail = 0
        elif padding in _SAME:
            # Without the dilation, and so fewer windows than the axis has strides.
            needed = max((-(-size // strides[i]) - 1) * strides[i] + kernel[i] - size, 0)
            head = needed // 2 if padding == b"SAME_UPPER" else needed - needed // 2
            tail = needed - head
        reach = size + head + tail - dilations[i] * (kernel[i] - 1) - 1
        count = (reach // strides[i] if reach >= 0 else -(-reach // strides[i])) + 1
        if rounding == 1:
            count = -(-reach // strides[i]) + 1
            count -= (count - 1) * strides[i] >= size + head
        windows.append(count)
    return dict.fromkeys(range(op.outputs), (*shape[:2], *windows))


_SAME: Final = (b"SAME_UPPER", b"SAME_LOWER")


@_rule("Resize", "Upsample")
def _scaled(op: Operation) -> Shapes:
    shape = op.shape(0)
    if op.attributes.get("coordinate_transformation_mode") == b"tf_crop_and_resize":
        return {0: None if shape is None else (None,) * len(shape)}
    scales: Sequence[float] | None = op.attributes.get("scales")
    place = 2 if len(op.shapes) > 2 else 1
    found = op.array(place)
    if scales is None and found is not None and found.dtype == np.float32:
        scales = found.reshape(-1).tolist()
    if shape is None or not scales:
        return {}
    axes = _counted(op.attributes.get("axes") or range(len(shape)), len(shape))
    if len(axes) != len(scales) or not all(0 < scale < _LAST for scale in scales):
        return {0: (None,) * len(shape)}
    made = list(shape)
    for axis, scale in zip(axes, scales, strict=True):
        size = made[axis]
        if isinstance(size, int):
            made[axis] = int(np.float32(size) * np.float32(scale))
        elif scale != 1:
            made[axis] = None
    return {0: tuple(made)}


@_rule("STFT")
def _spectrum(op: Operation) -> Shapes:
    signal, window, step, length = op.shape(0), op.shape(2), op.array(1), op.array(3)
    frame: Dim = window[0] if window else None
    if length is not None and length.size == 1:
        frame = int(length.item())
    frames: Dim = None
    bins: Dim = None
    if isinstance(frame, int):
        bins = frame // 2 + 1 if op.integer("onesided", 1) else frame
        size = signal[1] if signal is not None and len(signal) > 1 else None
        if isinstance(size, int) and step is not None and step.size == 1 and step.item() > 0:
            frames = (size - frame) // int(step.item()) + 1
    return {0: (signal[0] if signal else None, frames, bins, 2)}


@_rule("Slice")
def _slice(op: Operation) -> Shapes:
    shape, starts, ends = op.shape(0), op.listed("starts", 1), op.listed("ends", 2)
    if shape is None or starts is None or ends is None:
        return {}
    axes, steps = op.listed("axes", 3), op.listed("steps", 4)
    if (axes is None and op.has(3)) or (steps is None and op.has(4)):
        return {}
    made = list(shape)
    places = _counted(range(len(starts)) if axes is None else axes, len(shape))
    steps = steps or [1] * len(starts)
    if {len(starts), len(ends), len(steps)} != {len(places)}:
        return {0: (None,) * len(shape)}
    for axis, start, end, step in zip(places, starts, ends, steps, strict=True):
        size = made[axis]
        if isinstance(size, int):
            made[axis] = _taken(size, start, end, step)
        elif (start, step) != (0, 1) or end < _LAST:
            made[axis] = None
    return {0: tuple(made)}


_LAST: Final = (1 << 31) - 1
"""Ends from here on are beyond any axis."""

_ENDS: Final = (_LAST, (1 << 63) - 1)
"""With a negative step, ONNX Runtime takes these for the beginning of the axis, ONNX does not."""


def _taken(size: int, start: int, end: int, step: int) -> int | None:
    """Return the number of elements of a slice."""
    if step == 0 or (step < 0 and end in _ENDS):
        return None
    start, end = (item + size if item < 0 else item for item in (start, end))
    if step > 0:
        return len(range(min(max(start, 0), size), min(max(end, 0), size), step))
    return len(range(min(max(start, 0), size - 1), min(max(end, -1), size), step))


@_rule("Squeeze")
def _squeeze(op: Operation) -> Shapes:
    shape, axes = op.shape(0), op.listed("axes", 1)
    if shape is None or (axes is None and op.has(1)):
        return {}
    if not axes:
        if all(isinstance(size, int) for size in shape):
            return {0: tuple(size for size in shape if size != 1)}
        return {0: None}
    gone = _counted(axes, len(shape))
    return {0: tuple(size for axis, size in enumerate(shape) if axis not in gone)}


@_rule("Unsqueeze")
def _unsqueeze(op: Operation) -> Shapes:
    shape, axes = op.shape(0), op.listed("axes", 1)
    if shape is None or axes is None:
        return {}
    rank = len(shape) + len(axes)
    added, rest = _counted(axes, rank), iter(shape)
    return {0: tuple(1 if axis in added else next(rest, None) for axis in range(rank))}


@_rule("NonZero")
def _places(op: Operation) -> Shapes:
    shape = op.shape(0)
    # ONNX Runtime accepts a scalar as a vector of one element; ONNX's specification does not.
    return {} if shape is None else {0: (len(shape) or None, None)}


@_rule("PRelu")
def _by_slope(op: Operation) -> Shapes:
    data, slope = op.shape(0), op.shape(1)
    if data is None or slope is None:
        return {}
    rank = max(len(data), len(slope))
    sides = ((1,) * (rank - len(data)) + data, (1,) * (rank - len(slope)) + slope)
    return {0: tuple(_broadcast(left, right) for left, right in zip(*sides, strict=True))}


@_rule("ConvTranspose")
def _transposed(op: Operation) -> Shapes:
    stated, data, weight = op.attributes.get("output_shape"), op.shape(0), op.shape(1)
    is_same = op.attributes.get("auto_pad") in _SAME and "output_padding" in op.attributes
    if not (stated or is_same) or data is None or weight is None or len(weight) < 2:
        return {}
    sizes: Sequence[Dim] = stated or [None] * (len(data) - 2)
    channels = weight[1]
    group = op.integer("group", 1)
    made = channels * group if isinstance(channels, int) else channels if group == 1 else None
    return {0: (data[0], made, *sizes) if len(sizes) == len(data) - 2 else None}


@_rule("Attention")
def _attention(op: Operation) -> Shapes:
    query, key, value, past = op.shape(0), op.shape(1), op.shape(2), op.shape(4)
    if query is None or key is None or value is None:
        return {}
    if {len(query), len(key), len(value)} not in ({3}, {4}) or (op.has(4) and not past):
        return dict.fromkeys((0, 1, 2, 3), None)
    if isinstance(key[-2], int) and isinstance(value[-2], int) and key[-2] != value[-2]:
        return dict.fromkeys((0, 1, 2, 3), None)
    lengths = (key[-2], past[2] if past and len(past) == 4 else None if past else 0)
    total = sum(size for size in lengths if isinstance(size, int))
    is_open = not all(isinstance(size, int) for size in lengths)  # for which inference states 0
    tail: Dims = (query[-2], None if is_open else total)
    if len(query) == 4:
        return {3: (*query[:2], *tail)}
    heads, size = op.integer("kv_num_heads"), value[-1]
    width = size // heads * op.integer("q_num_heads") if isinstance(size, int) and heads else None
    return {0: (*query[:2], width), 3: (query[0], op.integer("q_num_heads"), *tail)}


@_rule("Einsum")
def _einsum(op: Operation) -> Shapes:
    terms, arrow, result = op.attributes["equation"].decode(errors="replace").replace(
        " ", "").partition("->")  # fmt: skip
    parts = terms.split(",")
    if "." in terms or len(parts) != len(op.shapes):
        return {}
    sizes: dict[str, Dim] = {}
    for part, shape in zip(parts, op.shapes, strict=True):
        if shape is None or len(part) != len(shape):
            return {}
        for letter, size in zip(part, shape, strict=True):
            sizes[letter] = _broadcast(sizes[letter], size) if letter in sizes else size
    if not arrow:
        result = "".join(sorted(letter for letter in sizes if terms.count(letter) == 1))
    return {0: tuple(sizes.get(letter) for letter in result)}


@_rule("Concat")
def _joined(op: Operation) -> Shapes:
    # ONNX Runtime passes over empty values, whatever their other dimensions are.
    shapes = [shape for shape in op.shapes if shape is not None]
    if not any(0 in shape for shape in shapes) or len({*map(len, shapes)}) != 1:
        return {}
    rank = len(shapes[0])
    along = op.integer("axis", 1) % max(rank, 1)
    others = [{shape[axis] for shape in shapes} for axis in range(rank) if axis != along]
    is_certain = all(len(sizes) == 1 or 0 not in sizes for sizes in others)
    return {} if is_certain else {0: (None,) * rank}


@_rule("DFT")
def _transform(op: Operation) -> Shapes:
    shape = op.shape(0)
    is_open = op.has(1) and op.array(1) is None
    if shape is None or (op.integer("onesided") in (0, 1) and not is_open):
        return {}
    return {0: (None,) * len(shape)}


@_rule("CenterCropPad")
def _cropped(op: Operation) -> Shapes:
    wanted, shape = op.array(1), op.shape(0)
    if wanted is None or shape is None or all(item >= 0 for item in wanted.reshape(-1)):
        return {}
    return {0: (None,) * len(shape)}


@_rule("Reshape")
def _reshape(op: Operation) -> Shapes:
    return {0: None} if op.integer("allowzero") not in (0, 1) else {}


@_rule(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def _reduced(op: Operation) -> Shapes:
    return {} if op.integer("noop_with_empty_axes") in (0, 1) else {0: None}


def _broadcast(left: Dim, right: Dim) -> Dim:
    """Return a dimension of two broadcast ones; None if it may be either."""
    if left == right or right == 1:
        return left
    if left == 1:
        return right if isinstance(right, int) else None  # where inference states 1
    return next((size for size in (left, right) if isinstance(size, int)), None)


def _counted(axes: Sequence[int] | Iterator[int], rank: int) -> list[int]:
    """Return axes as non-negative numbers, without those out of range."""
    return [axis % rank for axis in axes if -rank <= axis < rank]


Place = tuple[int, int]
"""Number of a graph, and of a node in it."""

Corrections = dict[Place, list[Any]]
"""Types of the outputs of nodes, as ``onnx.TypeProto``; None for unknown ones."""

_MOST_ELEMENTS: Final = 1024
"""Rules read constants of at most this size."""

_UNEXPECTED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Raised by rules for attributes and inputs that the operator does not allow."""

_CHECKED: Final = frozenset((*rules, *TYPED_BY))


def questionable(graphs: Sequence[Any]) -> list[Place]:
    """Find the nodes about whose results ONNX's inference may be wrong."""
    return [
        (number, place)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if node.op_type in _CHECKED and not schema.plain(node.domain)
    ]


def questionable_calls(model: Any, graphs: Sequence[Any]) -> list[Place]:
    """Find the nodes that call functions of the model with such nodes in them.

    Inference does not state what it finds within a function.
    """
    wrong: set[tuple[str, str]] = set()
    before = -1
    while len(wrong) > before:
        before = len(wrong)
        for function in model.functions:
            inside = list(graphs_within(function))
            if questionable(inside) or _calling(inside, wrong):
                wrong.add((function.domain, function.name))
    return _calling(graphs, wrong)


def _calling(graphs: Sequence[Any], functions: set[tuple[str, str]]) -> list[Place]:
    return [
        (number, place)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if (node.domain, node.op_type) in functions
    ]


def corrections(
    graphs: Sequence[Any], places: Sequence[Place], version: int, before: Corrections
) -> Corrections:
    """Return the types of nodes for which inference found others than ONNX Runtime computes.

    Parameters
    ----------
    graphs : sequence of onnx.GraphProto
        Those of a model with inferred types, in the order of `graphs_within`.
    places : sequence of (int, int)
        See `questionable`.
    version : int
        Of ONNX's own operator set.
    before : dict of (int, int) to list of onnx.TypeProto
        Corrections of a former round, which are stated in the graphs; those that still hold are
        left out.
    """
    found: Corrections = {}
    known = _Known(graphs)
    for number, place in places:
        node = graphs[number].node[place]
        inferred = [known.type(name, number) for name in node.output]
        right = _right(node, number, known, version)
        made = [
            kind if kind is None or output not in right else _corrected(kind, *right[output])
            for output, kind in enumerate(inferred)
        ]
        if (number, place) in before:
            if made != before[number, place]:
                found[number, place] = made
        elif right and any(
            kind is not None and _differs(kind, *right[output], known.names(node, number))
            for output, kind in enumerate(inferred)
            if output in right and made[output] != kind
        ):
            found[number, place] = made
    return found


class _Known:
    """Types and constants of graphs with inferred types."""

    def __init__(self, graphs: Sequence[Any]) -> None:
        self._types: list[dict[str, Any]] = []
        self._arrays: list[dict[str, Any]] = []
        for graph in graphs:
            types = {
                value.name: value.type
                for value in (*graph.input, *graph.value_info, *graph.output)
                if value.type.WhichOneof("value") == "tensor_type"
            }
            arrays = {tensor.name: tensor for tensor in graph.initializer}
            for name, tensor in arrays.items():
                types[name] = value_info(name, tensor.data_type, tensor.dims).type
            arrays |= {
                node.output[0]: node.attribute[0]
                for node in graph.node
                if node.op_type == "Constant" and len(node.attribute) == 1 and node.output
            }
            self._types.append(types)
            self._arrays.append(arrays)

    def type(self, name: str, number: int) -> Any:
        """Return the type of a tensor in a graph, or in the main graph around it; or None."""
        return self._types[number].get(name) or self._types[0].get(name)

    def names(self, node: Any, number: int) -> set[str]:
        """Return the names of dimensions of a node's inputs."""
        shapes = (_dims(self.type(name, number)) for name in node.input)
        return {size for shape in shapes for size in shape or () if isinstance(size, str)}

    def array(self, name: str, number: int) -> np.ndarray[Any, Any] | None:
        """Return the elements of a small constant; None for others."""
        if name not in self._arrays[number] and name not in self._types[number]:
            number = 0
        found = self._arrays[number].get(name)
        if found is None or isinstance(found, np.ndarray):
            return found
        value = found if hasattr(found, "data_location") else _value(found)
        array = _elements(value) if hasattr(value, "data_location") else np.asarray(value)
        self._arrays[number][name] = array
        return array


def _elements(tensor: Any) -> np.ndarray[Any, Any] | None:
    if tensor.data_location == EXTERNAL or np.prod(tensor.dims, dtype=float) > _MOST_ELEMENTS:
        return None
    helper: Any = require("onnx.numpy_helper", extra="onnx")
    try:
        found: np.ndarray[Any, Any] = helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):  # too few elements, or of no type
        return None
    return found


def _value(attribute: Any) -> Any:
    helper: Any = require("onnx.helper", extra="onnx")
    return helper.get_attribute_value(attribute)


def _dims(kind: Any) -> Dims | None:
    if kind is None or not kind.tensor_type.HasField("shape"):
        return None
    return tuple(
        int(dim.dim_value) if dim.HasField("dim_value") else dim.dim_param or None
        for dim in kind.tensor_type.shape.dim
    )


def _right(
    node: Any, number: int, known: _Known, version: int
) -> Mapping[int, tuple[int, Dims | None]]:
    """Return element types and shapes by output, for outputs that inference may be wrong about."""
    inputs = [known.type(name, number) for name in node.input]
    source = TYPED_BY.get(node.op_type)
    if source is not None:
        typed = inputs[source] if source < len(inputs) else None
        return {} if typed is None else {0: (typed.tensor_type.elem_type, _dims(inputs[0]))}
    operation = Operation(
        version,
        {each.name: _value(each) for each in node.attribute},
        [bool(name) for name in node.input],
        [_dims(kind) for kind in inputs],
        [known.array(name, number) for name in node.input],
        len(node.output),
    )
    try:
        found = rules[node.op_type](operation)
    except _UNEXPECTED:
        found = dict.fromkeys(range(operation.outputs))
    return {
        output: (0, None if dims is None else tuple(map(_representable, dims)))
        for output, dims in found.items()
    }


def _representable(size: Any) -> Any:
    """Leave a dimension open that no file can state."""
    return None if isinstance(size, int) and not 0 <= size < 1 << 63 else size


def _differs(kind: Any, code: int, dims: Dims | None, names: set[str]) -> bool:
    """Whether an inferred type states what is wrong, or what is not certain.

    Names that inference made up state nothing.
    """
    found = _dims(kind)
    if code not in (0, kind.tensor_type.elem_type):
        return True
    if found is None:
        return False
    if dims is None or len(dims) != len(found):
        return True
    return any(
        size != right and (size in names or (isinstance(size, int) and not isinstance(right, str)))
        for size, right in zip(found, dims, strict=True)
    )


def _corrected(kind: Any, code: int, dims: Dims | None) -> Any:
    made = copy_of(kind)
    made.tensor_type.elem_type = code or kind.tensor_type.elem_type
    made.tensor_type.ClearField("shape")
    if dims is not None:
        made.tensor_type.shape.SetInParent()
    for size in dims or ():
        dim = made.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size is not None:
            dim.dim_param = size
    return made


def put(graphs: Sequence[Any], found: Corrections) -> None:
    """State types in graphs, and those of no values that depend on them.

    ``graphs``: those of a model. ``found``: see `corrections`.
    """
    types: list[dict[str, Any]] = [{} for _ in graphs]
    for (number, place), kinds in found.items():
        types[number].update(zip(graphs[number].node[place].output, kinds, strict=True))
    doubtful = set().union(*types)
    for graph, stated in zip(graphs, types, strict=True):
        for node in graph.node:
            nested = any(each.HasField("g") or each.graphs for each in node.attribute)
            if nested or not doubtful.isdisjoint(node.input):
                doubtful.update(node.output)
        foreign = {n for node in graph.node if schema.plain(node.domain) for n in node.output}
        gone = (doubtful - foreign) | stated.keys()
        kept = [copy_of(value) for value in graph.value_info if value.name not in gone]
        del graph.value_info[:]
        graph.value_info.extend(kept)
        for value in graph.output:
            if value.name in gone:
                value.type.tensor_type.ClearField("shape")
            kind = stated.pop(value.name, None)
            if kind is not None:
                value.type.CopyFrom(kind)
        for name, kind in stated.items():
            if kind is not None and name:
                graph.value_info.add(name=name).type.CopyFrom(kind)
