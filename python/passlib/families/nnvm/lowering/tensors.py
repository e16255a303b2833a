"""Elementwise functions, reductions, and slicing, joining, padding and reshaping of arrays."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np

from passlib.families.nnvm.lowering.layers import DATA, image, pair, table, transposed
from passlib.families.nnvm.schema import TVM_OPERATOR
from passlib.graph.attributes import parse_int
from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, extent, flattened


@table.register("copy", "block_grad", "identity")
def identity(op: Operation) -> Value:
    """Return the input."""
    return op.emit("Identity", op.inputs[0])


@table.register("elemwise_sum")
def elemwise_sum(op: Operation) -> Value:
    """Add all inputs, which have one shape."""
    total = op.inputs[0]
    for value in op.inputs[1:]:
        total = total + value
    return total if len(op.inputs) > 1 else op.emit("Identity", total)


def _mod(op: Operation, a: Value, b: Value) -> Value:
    """Compute the remainder with the sign of the dividend, as in C."""
    return op.emit("Mod", a, b, fmod=1)


def _shift_left(op: Operation, a: Value, b: Value) -> Value:
    _require_whole(op, a)
    return a * _power_of_two(op, a, b)


def _shift_right(op: Operation, a: Value, b: Value) -> Value:
    """Divide by a power of two, rounding toward negative infinity."""
    _require_whole(op, a)
    divisor = _power_of_two(op, a, b)
    return (a - op.emit("Mod", a, divisor)) / divisor


def _power_of_two(op: Operation, like: Value, exponent: Value) -> Value:
    if exponent.constant is not None:
        bits = 8 * op.dtype_of(like).itemsize
        if not np.all((exponent.constant >= 0) & (exponent.constant < bits)):
            op.unsupported(f"integers of {bits} bits can be shifted by 0 to {bits - 1}")
        return op.constant_like(2.0 ** np.asarray(exponent.constant, np.float64), like)
    return op.cast(2.0 ** op.cast(exponent, np.float64), op.dtype_of(like))


def _require_whole(op: Operation, value: Value) -> None:
    if op.dtype_of(value).kind not in "iu":
        op.unsupported("only integers can be shifted")


def _comparison(onnx_operator: str) -> Callable[[Operation, Value, Value], Value]:
    def compare(op: Operation, a: Value, b: Value) -> Value:
        return op.cast(op.emit(onnx_operator, a, b), op.dtype_of(a))

    return compare


def _plain(onnx_operator: str) -> Callable[[Operation, Value, Value], Value]:
    return lambda op, a, b: op.emit(onnx_operator, a, b)


_BINARY: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "elemwise_mod": _mod,
    "elemwise_pow": _plain("Pow"),
    "broadcast_mod": _mod,
    "broadcast_pow": _plain("Pow"),
    "broadcast_max": _plain("Max"),
    "broadcast_min": _plain("Min"),
    "broadcast_left_shift": _shift_left,
    "broadcast_right_shift": _shift_right,
    "broadcast_less": _comparison("Less"),
    "broadcast_less_equal": _comparison("LessOrEqual"),
    "__add_symbol__": _plain("Add"),
    "__sub_symbol__": _plain("Sub"),
    "__mul_symbol__": _plain("Mul"),
    "__div_symbol__": _plain("Div"),
    "__mod_symbol__": _mod,
    "__pow_symbol__": _plain("Pow"),
    "__max_symbol__": _plain("Max"),
    "__min_symbol__": _plain("Min"),
    "__left_shift_symbol__": _shift_left,
    "__right_shift_symbol__": _shift_right,
    "__equal_symbol__": _comparison("Equal"),
    "__not_equal_symbol__": lambda op, a, b: op.cast(~a.equals(b), op.dtype_of(a)),
    "__greater_symbol__": _comparison("Greater"),
    "__greater_equal_symbol__": _comparison("GreaterOrEqual"),
    "__less_symbol__": _comparison("Less"),
    "__less_equal_symbol__": _comparison("LessOrEqual"),
    "greater": _comparison("Greater"),
    "less": _comparison("Less"),
}

_SCALAR: dict[str, Callable[[Operation, Value, Value], Value]] = {
    "__add_scalar__": _plain("Add"),
    "__sub_scalar__": _plain("Sub"),
    "__rsub_scalar__": lambda op, a, b: b - a,
    "__mul_scalar__": _plain("Mul"),
    "__div_scalar__": _plain("Div"),
    "__rdiv_scalar__": lambda op, a, b: b / a,
    "__pow_scalar__": _plain("Pow"),
    "__rpow_scalar__": lambda op, a, b: b**a,
    "__lshift_scalar__": _shift_left,
    "__rshift_scalar__": _shift_right,
}


def _scalar(op: Operation) -> Value:
    # The number is rounded to single precision first, like the compiler's constants.
    return op.constant_like(np.float32(op.float("scalar")), op.inputs[0])


def _logical(onnx_operator: str, op: Operation) -> Value:
    truths = [op.cast(value, np.bool_) for value in op.inputs]
    return op.cast(op.emit(onnx_operator, *truths), op.dtype_of(op.inputs[0]))


for _name, _binary in _BINARY.items():
    table.register(_name)(lambda op, compute=_binary: compute(op, *op.operands(2)))
for _name, _with_number in _SCALAR.items():
    table.register(_name)(lambda op, compute=_with_number: compute(op, op.inputs[0], _scalar(op)))
for _name, _operator in (("logical_and", "And"), ("logical_or", "Or"), ("logical_not", "Not")):
    table.register(_name)(lambda op, operator=_operator: _logical(operator, op))


@table.register(TVM_OPERATOR)
def tvm_op(op: Operation) -> NoReturn:
    """Refuse the call. Even ``__nop``, an alias of its input, may stand for a reshape."""
    op.unsupported("the graph does not state what a compiled function computes", "func_name")


@table.register("full")
def full(op: Operation) -> Value:
    """Fill ``shape`` with ``fill_value``, in element type ``dtype``, by default float32."""
    return _filled(op, op.float("fill_value"))


@table.register("zeros")
def zeros(op: Operation) -> Value:
    """Fill ``shape`` with 0."""
    return _filled(op, 0.0)


@table.register("ones")
def ones(op: Operation) -> Value:
    """Fill ``shape`` with 1."""
    return _filled(op, 1.0)


@table.register("full_like")
def full_like(op: Operation) -> Value:
    """Fill the shape of the input with ``fill_value``, in its element type."""
    data = op.inputs[0]
    return op.emit("Expand", op.constant_like(op.float("fill_value"), data), op.emit("Shape", data))


def _filled(op: Operation, value: float) -> Value:
    shape = op.ints("shape")
    if min(shape, default=1) < 0:
        op.unsupported("has a negative size", "shape")
    dtype = op.dtype("dtype", np.dtype(np.float32)) or np.dtype(np.float32)
    return op.emit("Expand", op.constant(np.asarray(value).astype(dtype)), shape)


@table.register("argmax")
def argmax(op: Operation) -> Value:
    """Find the first position of the largest element, in element type ``dtype``, by default int32.

    The position is along ``axis``, or in the flattened data with a result of shape (1,).
    """
    return _position(op, "ArgMax")


@table.register("argmin")
def argmin(op: Operation) -> Value:
    """Find the first position of the smallest element, like `argmax`."""
    return _position(op, "ArgMin")


def _position(op: Operation, operator: str) -> Value:
    data, axes = op.inputs[0], op.ints("axis", ())
    if op.bool("exclude", False):
        named = {op.axis(data, axis) for axis in axes}
        axes = tuple(axis for axis in range(op.rank_of(data)) if axis not in named)
    if len(axes) > 1:
        op.unsupported("a position along several axes is undefined", "axis")
    keep = op.bool("keepdims", False)
    dtype = op.dtype("dtype", np.dtype(np.int32)) or np.dtype(np.int32)
    if axes:
        axis = op.axis(data, axes[0])
        alone = op.rank_of(data) == 1
        found = op.emit(operator, data, axis=axis, keepdims=int(keep or alone))
    else:
        found = op.emit(operator, flattened(op, data), axis=0, keepdims=1)
        if keep:
            found = op.emit("Reshape", found, [1] * op.rank_of(data))
    return op.cast(found, dtype)


@table.register("collapse_sum")
def collapse_sum(op: Operation) -> Value:
    """Sum the data to the shape of the second input, which broadcasts to that of the data."""
    data, like = op.operands(2)
    sizes, wanted = op.shape_of(data), op.shape_of(like)
    lead = len(sizes) - len(wanted)
    if lead < 0:
        op.unsupported("the second input has more axes than the first")
    stretched = [lead + i for i, size in enumerate(wanted) if size == 1 and sizes[lead + i] != 1]
    axes = [*range(lead), *stretched]
    if not axes:
        return op.emit("Identity", data)
    total = op.emit("ReduceSum", data, axes, keepdims=1)
    return op.emit("Reshape", total, wanted) if lead else total


@table.register("expand_like")
def expand_like(op: Operation) -> Value:
    """Broadcast a reduced array to the shape of the second input.

    The reduced axes are ``axis``, or all others with ``exclude``, or all axes if none is given.
    An array with as many axes as the second input is only broadcast.
    """
    data, like = op.operands(2)
    rank = op.rank_of(like)
    if op.rank_of(data) == rank:
        return op.emit("Expand", data, op.emit("Shape", like))
    named = {op.axis(like, axis) for axis in op.ints("axis", ())}
    axes = set(range(rank)) - named if op.bool("exclude", False) or not named else named
    sizes = op.shape_of(like)
    kept = [1 if axis in axes else size for axis, size in enumerate(sizes)]
    if math.prod(op.shape_of(data)) != math.prod(kept):
        op.unsupported(f"the shape {op.shape_of(data)} is not {sizes} without these axes", "axis")
    return op.emit("Expand", op.emit("Reshape", data, kept), sizes)


@table.register("concatenate")
def concatenate(op: Operation) -> Value:
    """Concatenate along ``axis``."""
    return op.emit("Concat", *op.inputs, axis=op.axis(op.inputs[0], op.int("axis", 1)))


@table.register("split")
def split(op: Operation) -> list[Value]:
    """Split along ``axis``: into n equal parts for ``n``, before each position for ``(i, j)``."""
    data, axis = op.inputs[0], op.axis(op.inputs[0], op.int("axis", 1))
    size = op.shape_of(data)[axis]
    given = op.ints("indices_or_sections")
    if op.string("indices_or_sections").strip()[:1].isdigit():
        (count,) = given
        if count < 1 or size % count:
            op.unsupported(f"does not divide an axis of size {size}", "indices_or_sections")
        sizes = [size // count] * count
    else:
        bounds = [0, *given, size]
        sizes = [after - before for before, after in itertools.pairwise(bounds)]
        if min(sizes) < 0:
            op.unsupported(f"are not ascending positions below {size}", "indices_or_sections")
    return op.emit("Split", data, sizes, axis=axis, outputs=len(sizes))


@table.register("expand_dims")
def expand_dims(op: Operation) -> Value:
    """Insert ``num_newaxis`` axes of size 1 before ``axis``."""
    data, count = op.inputs[0], op.int("num_newaxis", 1)
    if not 1 <= count <= 16:
        op.unsupported("must be from 1 to 16", "num_newaxis")
    axis = op.axis(data, op.int("axis"), extra=1)
    return op.emit("Unsqueeze", data, range(axis, axis + count))


@table.register("squeeze")
def squeeze(op: Operation) -> Value:
    """Remove axes of size 1: those of ``axis``, or all; one axis always remains."""
    data = op.inputs[0]
    axes = [op.axis(data, axis) for axis in op.ints("axis", ())]
    axes = axes or [axis for axis, size in enumerate(op.shape_of(data)) if size == 1]
    if axes and len(axes) == op.rank_of(data):
        axes = sorted(axes)[1:]
    if not axes:
        return op.emit("Identity", data)
    return op.emit("Squeeze", data, sorted(axes))


@table.register("pad")
def pad(op: Operation) -> Value:
    """Pad with ``pad_value``; ``pad_width`` is ((before, after), ...), a pair for each axis."""
    data = op.inputs[0]
    rank = op.rank_of(data)
    text = op.string("pad_width")
    try:
        numbers = [parse_int(word) for word in re.findall(r"-?\d+", text)]
    except ValueError:
        numbers = []
    if re.sub(r"[\d\s,()\[\]L-]", "", text) or len(numbers) != 2 * rank or min(numbers) < 0:
        op.unsupported(f"needs a pair of numbers for each of {rank} axes", "pad_width")
    amounts = [*numbers[::2], *numbers[1::2]]
    return op.emit("Pad", data, amounts, op.constant_like(op.float("pad_value", 0.0), data))


@table.register("take")
def take(op: Operation) -> Value:
    """Take elements by index: of the flattened data, or along ``axis``.

    Indices out of range are clipped.
    """
    data, indices = op.operands(2)
    axis = op.optional_int("axis")
    if axis is None:
        data, axis = flattened(op, data), 0
    axis = op.axis(data, axis)
    indices = op.cast(indices, np.int64)
    last = extent(op, data, axis) - 1
    inside = op.emit("Max", op.emit("Min", indices, last), [0])
    if op.rank_of(indices) == 0:
        inside = op.emit("Squeeze", inside, [0])
    return op.emit("Gather", data, inside, axis=axis)


@table.register("strided_slice")
def strided_slice(op: Operation) -> Value:
    """Slice from ``begin`` to ``end``, exclusive, by ``stride``, a number for each leading axis.

    Negative numbers count from the end, as in NumPy. Missing numbers of the three default to 0,
    the end of the axis, and 1.
    """
    data = op.inputs[0]
    begin, end, stride = op.ints("begin"), op.ints("end"), op.ints("stride", ())
    rank, count = op.rank_of(data), max(len(begin), len(end), len(stride))
    if count > rank:
        op.unsupported(f"has more numbers than the {rank} axes", "begin")
    if 0 in stride:
        op.unsupported("must not be 0", "stride")
    bounds = (
        [*given, *[missing] * (count - len(given))] for given, missing in ((begin, 0), (end, LAST))
    )
    steps = [*stride, *[1] * (count - len(stride))]
    return op.emit("Slice", data, *bounds, range(count), steps)


@table.register("slice_like")
def slice_like(op: Operation) -> Value:
    """Slice the data to the sizes of the second input, along ``axis`` or all common axes."""
    data, like = op.operands(2)
    common = range(min(op.rank_of(data), op.rank_of(like)))
    axes = [op.axis(data, axis) for axis in op.ints("axis", ())] or common
    for axis in axes:
        data = op.emit("Slice", data, [0], extent(op, like, axis), [axis])
    return data


@table.register("flip")
def flip(op: Operation) -> Value:
    """Reverse along ``axis``."""
    data = op.inputs[0]
    axis = op.axis(data, op.int("axis", 0))
    bounds = [LAST], [-LAST]
    return op.emit("Slice", data, *bounds, [axis], [-1])


@table.register("__layout_transform__", "layout_transform")
def layout_transform(op: Operation) -> Value:
    """Transpose from ``src_layout`` to ``dst_layout``, with a letter for each axis."""
    source, target = op.string("src_layout"), op.string("dst_layout")
    if sorted(source) != sorted(target) or not source.isalpha() or len({*source}) < len(source):
        op.unsupported(f"is not an order of the axes {source}", "dst_layout")
    if source == target:
        return op.emit("Identity", op.inputs[0])
    return transposed(op, op.inputs[0], source, target)


_METHODS = ("NEAREST_NEIGHBOR", "BILINEAR")


@table.register("upsampling")
def upsampling(op: Operation) -> Value:
    """Scale height and width by ``scale``; axes (N, C, H, W) or by ``layout``.

    Output position i is at ``i / scale`` of the input: the element there (NEAREST_NEIGHBOR), or
    linear interpolation between the two nearest (BILINEAR).
    """
    layout, data = image(op)
    scale = op.int("scale")
    if not 1 <= scale <= 1 << 16:
        op.unsupported(f"must be from 1 to {1 << 16}", "scale")
    scales = op.constant([1, 1, scale, scale], np.float32)
    result = _resized(op, data, _METHODS[0], scales=scales, aligned=False)
    return transposed(op, result, DATA, layout)


@table.register("resize")
def resize(op: Operation) -> Value:
    """Resize height and width to ``size``; axes (N, C, H, W) or by ``layout``.

    With ``align_corners``, the default, the outermost elements stay at the corners; otherwise
    positions are as in `upsampling`.
    """
    layout, data = image(op)
    aligned = op.bool("align_corners", True)
    height, width = pair(op, "size")
    if min(height, width) < 1:
        op.unsupported("must be at least 1", "size")
    sizes = [*op.shape_of(data)[:2], height, width]
    result = _resized(op, data, _METHODS[1], sizes=sizes, aligned=aligned)
    return transposed(op, result, DATA, layout)


def _resized(
    op: Operation,
    data: Value,
    default: str,
    *,
    scales: Value | None = None,
    sizes: Sequence[int] | None = None,
    aligned: bool,
) -> Value:
    method = op.string("method", default, choices=_METHODS)
    nearest = method == _METHODS[0]
    if nearest and aligned:
        op.unsupported("the nearest element is then not documented", "align_corners")
    return op.emit(
        "Resize",
        data,
        None,
        scales,
        sizes,
        mode="nearest" if nearest else "linear",
        coordinate_transformation_mode="align_corners" if aligned else "asymmetric",
        nearest_mode="floor" if nearest else None,
    )
