"""Slicing, joining, padding and reshaping of arrays."""

from __future__ import annotations

import itertools
import re

import numpy as np

from passlib.families.nnvm.lowering.layers import DATA, axis_order, pair, transposed, uses_order
from passlib.families.nnvm.lowering.table import table
from passlib.graph.attributes import parse_int
from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, extent, flattened, vector


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
    return op.emit("Split", data, vector(op, *sizes), axis=axis, outputs=len(sizes))


@table.register("expand_dims")
def expand_dims(op: Operation) -> Value:
    """Insert ``num_newaxis`` axes of size 1 before ``axis``."""
    data, count = op.inputs[0], op.int("num_newaxis", 1)
    if not 1 <= count <= 16:
        op.unsupported("must be from 1 to 16", "num_newaxis")
    axis = op.axis(data, op.int("axis"), extra=1)
    return op.emit("Unsqueeze", data, vector(op, *range(axis, axis + count)))


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
    return op.emit("Squeeze", data, vector(op, *sorted(axes)))


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
    amounts = vector(op, *numbers[::2], *numbers[1::2])
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
    last = op.emit("Sub", extent(op, data, axis), vector(op, 1))
    inside = op.emit("Max", op.emit("Min", indices, last), vector(op, 0))
    if op.rank_of(indices) == 0:
        inside = op.emit("Squeeze", inside, vector(op, 0))
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
        vector(op, *given, *[missing] * (count - len(given)))
        for given, missing in ((begin, 0), (end, LAST))
    )
    steps = vector(op, *stride, *[1] * (count - len(stride)))
    return op.emit("Slice", data, *bounds, vector(op, *range(count)), steps)


@table.register("slice_like")
def slice_like(op: Operation) -> Value:
    """Slice the data to the sizes of the second input, along ``axis`` or all common axes."""
    data, like = op.operands(2)
    common = range(min(op.rank_of(data), op.rank_of(like)))
    axes = [op.axis(data, axis) for axis in op.ints("axis", ())] or common
    for axis in axes:
        data = op.emit("Slice", data, vector(op, 0), extent(op, like, axis), vector(op, axis))
    return data


@table.register("flip")
def flip(op: Operation) -> Value:
    """Reverse along ``axis``."""
    data = op.inputs[0]
    axis = op.axis(data, op.int("axis", 0))
    bounds = vector(op, LAST), vector(op, -LAST)
    return op.emit("Slice", data, *bounds, vector(op, axis), vector(op, -1))


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
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
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
    layout = axis_order(op, "layout", DATA, DATA)
    data = uses_order(op, op.inputs[0], layout)
    aligned = op.bool("align_corners", True)
    height, width = pair(op, "size")
    if min(height, width) < 1:
        op.unsupported("must be at least 1", "size")
    sizes = vector(op, *op.shape_of(data)[:2], height, width)
    result = _resized(op, data, _METHODS[1], sizes=sizes, aligned=aligned)
    return transposed(op, result, DATA, layout)


def _resized(
    op: Operation,
    data: Value,
    default: str,
    *,
    scales: Value | None = None,
    sizes: Value | None = None,
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
