"""New shapes, insertion, deletion and padding along an axis."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import (
    LAST,
    concatenated,
    extent,
    flattened,
    gathered_shape,
    places,
    reshaped,
    vector,
)
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.numpy_operators.arithmetic import equal_types
from passlib.mxnet.lowering.real_arithmetic import is_true, number_of
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.creation import diagonal_line, on_diagonal
from passlib.mxnet.lowering.tensors.reduce import reduced
from passlib.mxnet.lowering.tensors.shape import (
    NUMPY,
    decode,
    decode_reversed,
    split_along,
    squeezed_axes,
)


@table.register("_np_reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``newshape``, in which -1 is the remaining size."""
    data, sizes = op.inputs[0], op.ints("newshape")
    if min(sizes, default=0) < -1 or sizes.count(-1) > 1:
        op.invalid("leaves more than one size open", "newshape")
    return reshaped(op, data, _without_open(op, data, list(sizes)))


@table.register("_npx_reshape")
def npx_reshape(op: Operation) -> Value:
    """Reshape to ``newshape``, whose codes -1 to -6 refer to the input's axes.

    -1 is the remaining size, -2 copies a size, -3 skips a size of 1, -4 copies all further sizes,
    -5 merges two axes, -6 splits one into the two numbers that follow. With ``reverse`` axes are
    matched from the right.
    """
    data, codes = op.inputs[0], op.ints("newshape")
    decoder = decode_reversed if op.bool("reverse", False) else decode
    rank = op.rank_of(data)
    try:
        dims = decoder(codes, data.shape or (), rank, NUMPY)
    except ValueError as error:
        open_sizes = data.shape is not None and None in data.shape
        (op.unsupported if open_sizes else op.invalid)(str(error), "newshape")
    return reshaped(op, data, _without_open(op, data, dims))


def _without_open(
    op: Operation, data: Value, dims: list[int | tuple[int, ...]]
) -> list[int | tuple[int, ...]]:
    """Compute the remaining size of an array without elements, which ONNX does not infer."""
    if -1 not in dims or data.shape is None or 0 not in data.shape:
        return dims
    shape = op.shape_of(data)
    sizes = [dim if isinstance(dim, int) else int(np.prod([shape[a] for a in dim])) for dim in dims]
    known = int(np.prod([size for size in sizes if size >= 0]))
    if known == 0:
        raise Misfit("no size follows for -1 in an array without elements")
    return [0 if size < 0 else size for size in sizes]


@table.register("_np_squeeze")
def squeeze(op: Operation) -> Value:
    """Drop axes of size 1: those of ``axis``, or all."""
    data, axes = op.inputs[0], squeezed_axes(op)
    return op.emit("Squeeze", data, axes) if axes else data


@table.register("_np_transpose")
def transpose(op: Operation) -> Value:
    """Permute the axes to the order ``axes``; reverse them if it is not given."""
    data, given = op.inputs[0], op.optional_ints("axes")
    rank = op.rank_of(data)
    if given is None:
        order = list(reversed(range(rank)))
    else:
        order = [op.axis(data, axis) for axis in given if axis is not None]
    if sorted(order) != list(range(rank)):
        op.invalid(f"is no order of {rank} axes", "axes")
    return op.emit("Transpose", data, perm=order) if rank else data


@table.register("_np_moveaxis")
def moveaxis(op: Operation) -> Value:
    """Move the axes ``source`` to the places ``destination``; the others keep their order."""
    data = op.inputs[0]
    source = [op.axis(data, axis) for axis in op.ints("source")]
    destination = [op.axis(data, axis) for axis in op.ints("destination")]
    if not len({*source}) == len(source) == len({*destination}) == len(destination):
        op.invalid("must be as many different axes as destination", "source")
    order = [axis for axis in range(op.rank_of(data)) if axis not in source]
    for place, axis in sorted(zip(destination, source, strict=True)):
        order.insert(place, axis)
    return op.emit("Transpose", data, perm=order) if order else data


@table.register("_npi_broadcast_to")
def broadcast_to(op: Operation) -> Value:
    """Broadcast to ``shape``, in which -2 copies the size of the input's axis."""
    data, shape = op.inputs[0], op.ints("shape", ())
    lacking = len(shape) - op.rank_of(data)
    if lacking < 0:
        op.invalid("has fewer axes than the input", "shape")
    sizes = []
    for place, size in enumerate(shape):
        if size >= 0:
            own = data.shape[place - lacking] if data.shape and place >= lacking else None
            if own not in (None, 1, size):
                op.invalid(f"broadcasts no axis of {own} to {size}", "shape")
            sizes.append(vector(op, size))
        elif size == -2 and place >= lacking:
            sizes.append(extent(op, data, place - lacking))
        else:
            op.unsupported("leaves a size open", "shape")
    return op.emit("Expand", data, concatenated(op, sizes))


def _rolled(op: Operation, data: Value, shift: int, axis: int) -> Value:
    size = extent(op, data, axis)
    if size.constant is not None and not size.constant[0]:
        return data
    if size.constant is not None:
        begin = vector(op, -shift % int(size.constant[0]))
    else:
        begin = op.emit("Mod", [-shift], op.emit("Max", size, [1]))
    tail = op.emit("Slice", data, begin, [LAST], [axis])
    return op.emit("Concat", tail, op.emit("Slice", data, [0], begin, [axis]), axis=axis)


@table.register("_np_roll")
def roll(op: Operation) -> Value:
    """Shift elements by ``shift`` along each of ``axis``, or in the flattened array, cyclically."""
    data, shifts, given = op.inputs[0], op.ints("shift"), op.optional_ints("axis")
    if given is None:
        if len(shifts) != 1:
            op.invalid("must be one number without an axis", "shift")
        flat = _rolled(op, flattened(op, data), shifts[0], 0)
        return op.emit(
            "Reshape", flat, gathered_shape(op, data, range(op.rank_of(data))), allowzero=1
        )
    axes = [op.axis(data, axis) for axis in given if axis is not None]
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        op.invalid("differs in length from axis", "shift")
    for shift, axis in zip(shifts, axes, strict=True):
        data = _rolled(op, data, shift, axis)
    return data


def _reversed(op: Operation, data: Value, *axes: int) -> Value:
    if not axes:
        return data
    count = len(axes)
    bounds = ([-1] * count, [np.iinfo(np.int64).min] * count, axes, [-1] * count)
    return op.emit("Slice", data, *(vector(op, *numbers) for numbers in bounds))


@table.register("_npi_flip")
def flip(op: Operation) -> Value:
    """Reverse the order along each of ``axis``, along all for ``None``."""
    data = op.inputs[0]
    rank = op.rank_of(data)
    axes = range(rank) if op.attr("axis") == "None" else op.ints("axis")
    return _reversed(op, data, *(op.axis(data, axis) for axis in axes))


@table.register("_npi_rot90")
def rot90(op: Operation) -> Value:
    """Rotate by ``k`` quarter turns from the first of ``axes`` to the second."""
    data, turns = op.inputs[0], op.int("k", 1) % 4
    first, second = (op.axis(data, axis) for axis in op.counted("axes", 2))
    if first == second:
        op.invalid("lists an axis twice", "axes")
    if turns == 0:
        return data
    if turns == 2:
        return _reversed(op, data, first, second)
    order = list(range(op.rank_of(data)))
    order[first], order[second] = second, first
    if turns == 1:
        return op.emit("Transpose", _reversed(op, data, second), perm=order)
    return _reversed(op, op.emit("Transpose", data, perm=order), second)


def _at_least(op: Operation, value: Value, count: int) -> Value:
    """Add axes of size 1 in front; a third one is added behind."""
    rank = op.rank_of(value)
    if rank >= count:
        return value
    if count < 3:
        return op.emit("Unsqueeze", value, [*range(count - rank)])
    axes = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}[rank]
    return op.emit("Unsqueeze", value, axes)


def _all_at_least(count: int, op: Operation) -> list[Value]:
    return [_at_least(op, value, count) for value in op.inputs]


for _count in (1, 2, 3):
    table.register(f"_np_atleast_{_count}d")(partial(_all_at_least, _count))


def _joined(op: Operation, parts: list[Value], axis: int) -> Value:
    if not parts:
        raise Misfit("there is nothing to join")
    return op.emit("Concat", *parts, axis=axis)


@table.register("_npi_concatenate")
def concatenate(op: Operation) -> Value:
    """Concatenate along ``axis``, or the flattened arrays for ``None``."""
    axis = op.optional_int("axis", 0)
    if axis is None:
        return _joined(op, [flattened(op, value) for value in op.inputs], 0)
    return _joined(op, op.inputs, op.axis(op.inputs[0], axis))


def _stacked(count: int, op: Operation) -> Value:
    """Concatenate along the second axis (1), the first (2) or the third (3).

    Arrays get at least ``count`` axes: vectors are rows of vstack; hstack joins their only axis.
    """
    axis = {1: int(op.rank_of(op.inputs[0]) > 1), 2: 0, 3: 2}[count]
    return _joined(op, _all_at_least(count, op), axis)


for _count, _name in enumerate(("hstack", "vstack", "dstack"), 1):
    table.register(f"_npi_{_name}")(partial(_stacked, _count))


@table.register("_npi_column_stack")
def column_stack(op: Operation) -> Value:
    """Concatenate along the second axis; vectors are columns."""
    parts = [
        reshaped(op, value, [-1, 1]) if op.rank_of(value) < 2 else value for value in op.inputs
    ]
    return _joined(op, parts, 1)


@table.register("_npi_hsplit")
def hsplit(op: Operation) -> list[Value]:
    """Split along the second axis, or along the only one."""
    op.require_rank(op.inputs[0], least=1)
    return split_along(op, int(op.rank_of(op.inputs[0]) > 1))


@table.register("_npi_dsplit")
def dsplit(op: Operation) -> list[Value]:
    """Split along the third axis."""
    op.require_rank(op.inputs[0], least=3)
    return split_along(op, 2)


def _extracted(op: Operation, data: Value, offset: int, first: int, second: int) -> Value:
    """Extract diagonal ``offset`` of two axes as the last axis; it may be empty."""
    first, second = op.axis(data, first), op.axis(data, second)
    if first == second:
        op.invalid("is the same axis as axis1", "axis2")
    others = [axis for axis in range(op.rank_of(data)) if axis not in (first, second)]
    return diagonal_line(op, op.emit("Transpose", data, perm=[*others, first, second]), offset)


@table.register("_np_diag")
def diag(op: Operation) -> Value:
    """Create a matrix with a vector on diagonal ``k``, or extract that diagonal of a matrix."""
    data, k = op.inputs[0], op.int("k", 0)
    if op.rank_of(data) == 1:
        return on_diagonal(op, data, k)
    op.require_rank(data, 2)
    return _extracted(op, data, k, 0, 1)


@table.register("_np_diagflat")
def diagflat(op: Operation) -> Value:
    """Create a matrix with the elements of an array on diagonal ``k``."""
    return on_diagonal(op, flattened(op, op.inputs[0]), op.int("k", 0))


@table.register("_np_diagonal")
def diagonal(op: Operation) -> Value:
    """Extract diagonal ``offset`` of ``axis1`` and ``axis2`` as the last axis."""
    axes = op.int("axis1", 0), op.int("axis2", 1)
    return _extracted(op, op.inputs[0], op.int("offset", 0), *axes)


@table.register("_np_trace")
def trace(op: Operation) -> Value:
    """Sum diagonal ``offset`` of ``axis1`` and ``axis2``; 0 if it is empty."""
    axes = op.int("axis1", 0), op.int("axis2", 1)
    line = _extracted(op, op.inputs[0], op.int("offset", 0), *axes)
    if line.shape is not None and line.shape[-1] == 0:
        return op.emit("Expand", op.constant_like(0, line), op.shape_of(line)[:-1])
    last = op.rank_of(line) - 1
    return op.emit("Squeeze", reduced("ReduceSum", op, line, [last]), [last])


@table.register("_npi_tril")
def tril(op: Operation) -> Value:
    """Keep the elements up to diagonal ``k`` of each matrix; a vector (n,) makes rows (n, n)."""
    data = op.inputs[0]
    if op.rank_of(data) == 1:
        size = extent(op, data, 0)
        data = op.emit("Expand", data, concatenated(op, [size, size]))
    if data.shape is not None and 0 in data.shape:
        return data
    return op.emit("Trilu", data, op.constant(op.int("k", 0), np.int64), upper=0)


@table.register("_npi_diag_indices_from")
def diag_indices_from(op: Operation) -> Value:
    """Return the positions (rank, n) of the main diagonal of an array with axes of one size."""
    data = op.inputs[0]
    op.require_rank(data, least=2)
    rank = op.rank_of(data)
    if len({*(data.shape or ())} - {None}) > 1:
        raise Misfit("all axes must have one size")
    return op.emit("Tile", op.emit("Unsqueeze", places(op, data, 0), [0]), [rank, 1])


def _line(op: Operation) -> tuple[Value, int]:
    """Return the array and the axis to edit; the flattened array without an axis."""
    data, axis = op.inputs[0], op.optional_int("axis")
    if axis is None or op.rank_of(data) == 0:
        return flattened(op, data), 0
    return data, op.axis(data, axis)


def _sliced(op: Operation, size: int) -> np.ndarray:
    """Return the places that the attributes ``start``, ``stop`` and ``step`` select."""
    bounds = [op.optional_int(name) for name in ("start", "stop", "step")]
    if bounds[2] == 0:
        op.invalid("must not be 0", "step")
    return np.arange(size)[slice(*bounds)]


def _values(op: Operation, data: Value) -> tuple[Value, list[Value]]:
    """Return the inserted values, in the array's type, and the inputs after them."""
    if op.optional_float("val") is not None:
        return number_of(op, "val", 0.0, op.dtype_of(data)), op.inputs[1:]
    values, *rest = op.inputs[1:]
    return op.cast(values, op.dtype_of(data)), rest


def _raised(op: Operation, values: Value, rank: int) -> Value:
    lacking = rank - op.rank_of(values)
    if lacking < 0:
        if any(size != 1 for size in op.sizes_of(values)[:-lacking]):
            raise Misfit("the values have more axes than the array")
        return op.emit("Squeeze", values, [*range(-lacking)])
    return op.emit("Unsqueeze", values, [*range(lacking)]) if lacking else values


def _spread(op: Operation, values: Value, data: Value, axis: int, count: Value) -> Value:
    """Broadcast the values to the array's shape with ``count`` places along the axis."""
    sizes = [extent(op, data, other) for other in range(op.rank_of(data))]
    sizes[axis] = count
    shape = concatenated(op, sizes)
    spread = op.emit("Expand", values, shape)
    if shape.constant is not None and 0 in shape.constant:
        # ONNX Runtime refuses a transposition before an expansion to no elements.
        return op.emit("Expand", op.constant_like(0, data), shape)
    return spread


def _check_place(op: Operation, data: Value, axis: int, place: int) -> None:
    size = op.sizes_of(data)[axis]
    if size is not None and not -size <= place <= size:
        op.invalid(f"is outside an axis of {size}", "int_ind")


def _until(op: Operation, data: Value, axis: int, place: int) -> Value:
    return op.emit("Slice", data, [0], [place], [axis])


def _from(op: Operation, data: Value, axis: int, place: int) -> Value:
    return op.emit("Slice", data, [place], [LAST], [axis])


@table.register("_npi_insert_scalar")
def insert_at_number(op: Operation) -> Value:
    """Insert ``val`` or the second input before place ``int_ind`` of ``axis``, 0 by default.

    The first axis of the values becomes that axis; without one the array is flattened.
    """
    data, axis = _line(op)
    place = op.optional_int("int_ind") or 0
    _check_place(op, data, axis, place)
    values = _raised(op, _values(op, data)[0], op.rank_of(data))
    order = [*range(1, axis + 1), 0, *range(axis + 1, op.rank_of(data))]
    values = op.emit("Transpose", values, perm=order)
    values = _spread(op, values, data, axis, extent(op, values, axis))
    parts = _until(op, data, axis, place), values, _from(op, data, axis, place)
    return op.emit("Concat", *parts, axis=axis)


@table.register("_npi_insert_slice")
def insert_at_slice(op: Operation) -> Value:
    """Insert ``val`` or the second input before the places of a slice of ``axis``."""
    data, axis = _line(op)
    size = op.size_of(data, axis)
    places = _sliced(op, size)
    if not places.size:
        return data
    values = _raised(op, _values(op, data)[0], op.rank_of(data))
    # A single place takes all values.
    count = vector(op, places.size) if places.size > 1 else extent(op, values, axis)
    values = _spread(op, values, data, axis, count)
    number = places.size if places.size > 1 else op.size_of(values, axis)
    targets = places if places.size > 1 else np.repeat(places, number)
    order = np.insert(np.arange(size), targets, size + np.arange(number))
    return op.emit("Gather", op.emit("Concat", data, values, axis=axis), [*order], axis=axis)


@table.register("_npi_insert_tensor")
def insert_at_tensor(op: Operation) -> Value:
    """Insert ``val`` or the second input before the places that the last input lists."""
    data, axis = _line(op)
    values, rest = _values(op, data)
    if len(rest) != 1:
        raise Misfit("it takes one array of places")
    places = op.cast(flattened(op, rest[0]), np.int64)
    values = _raised(op, values, op.rank_of(data))
    size = extent(op, data, axis)
    single = math.prod(op.shape_of(rest[0])) == 1
    count = extent(op, values, axis) if single else extent(op, places, 0)
    values = _spread(op, values, data, axis, count)
    places = op.where(places < vector(op, 0), places + size, places)
    # Element j is numbered 2 j + 1, an insertion before it 2 j; the order of numbers is stable.
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    own = op.emit("Range", zero, op.emit("Squeeze", size, [0]), one)
    own = own * vector(op, 2) + vector(op, 1)
    numbers = op.emit("Concat", own, op.emit("Expand", places * vector(op, 2), count), axis=0)
    total = extent(op, numbers, 0)
    order = op.emit("TopK", numbers, total, axis=0, largest=0, sorted=1, outputs=2)[1]
    return op.emit("Gather", op.emit("Concat", data, values, axis=axis), order, axis=axis)


@table.register("_npi_delete")
def delete(op: Operation) -> Value:
    """Delete from ``axis`` a slice if there is a ``step``, ``int_ind``, or the listed places."""
    data, axis = _line(op)
    if len(op.inputs) == 1:
        place = op.optional_int("int_ind")
        if op.optional_int("step") is None and place is not None:
            _check_place(op, data, axis, place)
            after = LAST if place == -1 else place + 1
            parts = _until(op, data, axis, place), _from(op, data, axis, after)
            return op.emit("Concat", *parts, axis=axis)
        count = op.size_of(data, axis)
        kept = np.delete(np.arange(count), _sliced(op, count))
        return op.emit("Gather", data, [*kept], axis=axis)
    places = op.cast(flattened(op, op.inputs[1]), np.int64)
    column = op.emit("Unsqueeze", places, [1])
    ones = op.emit("Expand", op.constant(1, np.int64), extent(op, data, axis))
    zeros = op.emit("Expand", op.constant(0, np.int64), op.emit("Shape", places))
    marks = op.emit("ScatterND", ones, column, zeros)
    left = op.emit("Squeeze", op.emit("NonZero", marks), [0])
    return op.emit("Gather", data, left, axis=axis)


_PAIR = re.compile(r"[\[(]\s*(\d+)\s*,\s*(\d+)\s*,?\s*[\])]")


def _widths(op: Operation, rank: int) -> list[tuple[int, int]]:
    """Read ``pad_width``, a tuple of pairs; one pair serves all axes."""
    text = op.attr("pad_width") or ""
    pairs = [(int(first), int(second)) for first, second in _PAIR.findall(text[:10_000])]
    rest = _PAIR.sub("", text).translate(str.maketrans("", "", "()[], "))
    if rest or len(pairs) not in (1, rank):
        op.invalid("must be one pair of numbers for each axis", "pad_width")
    return pairs * rank if len(pairs) == 1 else pairs


def _pad_constant(op: Operation, data: Value, widths: list[tuple[int, int]]) -> Value:
    filling = number_of(op, "constant_value", 0.0, op.dtype_of(data))
    numbers = [*(before for before, _ in widths), *(after for _, after in widths)]
    return op.emit("Pad", data, numbers, filling)


def _pad_by_place(mode: str, op: Operation, data: Value, widths: list[tuple[int, int]]) -> Value:
    """Copy elements of the same line: NumPy's padding of the places finds them."""
    given = data
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if op.sizes_of(given)[axis] is None and mode != "symmetric":
            data = op.emit("Pad", data, width, None, [axis], mode=mode)
            continue
        size = op.size_of(given, axis)
        if not size:
            raise Misfit(f"axis {axis} of size 0 has no elements to pad with")
        op.affordable(size + sum(width))
        places = np.pad(np.arange(size), width, mode=mode)  # type: ignore[call-overload]
        data = op.emit("Gather", data, places, axis=axis)
    return data


def _pad_extreme(
    onnx_operator: str, op: Operation, data: Value, widths: list[tuple[int, int]]
) -> Value:
    for axis, (before, after) in enumerate(widths):
        line = op.emit(onnx_operator, data, vector(op, axis), keepdims=1)
        sizes = [extent(op, data, other) for other in range(op.rank_of(data))]
        around = []
        for count in (before, after):
            sizes[axis] = vector(op, count)
            # ONNX Runtime expands to no elements wrongly.
            around.append([op.emit("Expand", line, concatenated(op, sizes))] if count else [])
        parts = [*around[0], data, *around[1]]
        data = op.emit("Concat", *parts, axis=axis)
    return data


_Padding = Callable[[Operation, Value, list[tuple[int, int]]], Value]
_PADDINGS: dict[str, _Padding] = {
    "constant": _pad_constant,
    "edge": partial(_pad_by_place, "edge"),
    "reflect": partial(_pad_by_place, "reflect"),
    "symmetric": partial(_pad_by_place, "symmetric"),
    "maximum": partial(_pad_extreme, "ReduceMax"),
    "minimum": partial(_pad_extreme, "ReduceMin"),
}


@table.register("_npi_pad")
def pad(op: Operation) -> Value:
    """Pad each axis by ``pad_width`` (before, after), as ``mode`` says."""
    data = op.inputs[0]
    mode = op.string("mode", "constant", choices=tuple(_PADDINGS))
    if mode == "reflect" and op.string("reflect_type", "even") not in ("even", "None"):
        op.unsupported("must be even", "reflect_type")
    return _PADDINGS[mode](op, data, _widths(op, op.rank_of(data)))


@table.register("_npi_where")
def where(op: Operation) -> Value:
    """Select the second input where the condition is not 0, else the third; all broadcast."""
    condition, chosen, other = op.operands(3)
    equal_types(op, chosen, other)
    return op.where(is_true(op, condition), chosen, other)


def _where_number(number_first: bool, op: Operation) -> Value:
    """Select ``scalar`` or the second input by the condition."""
    condition, other = op.operands(2)
    pair = number_of(op, "scalar", 0.0, op.dtype_of(other)), other
    return op.where(is_true(op, condition), *(pair if number_first else pair[::-1]))


table.register("_npi_where_lscalar")(partial(_where_number, True))
table.register("_npi_where_rscalar")(partial(_where_number, False))


@table.register("_npi_where_scalar2")
def where_two_numbers(op: Operation) -> Value:
    """Select the number ``x`` where the condition is not 0, else ``y``, as float32."""
    chosen, other = (number_of(op, name, 0.0, np.dtype(np.float32)) for name in "xy")
    return op.where(is_true(op, op.inputs[0]), chosen, other)


def _aligned(op: Operation, data: Value, mask: Value) -> Value:
    """Add axes of size 1 to a mask that covers the axes from ``start_axis`` on."""
    start = op.int("start_axis", 0)
    before, after = start, op.rank_of(data) - start - op.rank_of(mask)
    if start < 0 or after < 0:
        op.invalid("leaves too few axes for the mask", "start_axis")
    axes = [(axis,) for axis in range(op.rank_of(mask))]
    return reshaped(op, is_true(op, mask), [*[1] * before, *axes, *[1] * after])


@table.register("_npi_boolean_mask_assign_scalar")
def boolean_mask_assign_scalar(op: Operation) -> Value:
    """Replace the elements that the mask selects from ``start_axis`` on by ``value``."""
    data, mask = op.operands(2)
    number = number_of(op, "value", 0.0, op.dtype_of(data))
    return op.where(_aligned(op, data, mask), number, data)


@table.register("_npi_boolean_mask_assign_tensor")
def boolean_mask_assign_tensor(op: Operation) -> Value:
    """Replace the elements that the mask selects from ``start_axis`` on by the third input.

    Its axes are those before ``start_axis``, one for the selected places in their order, and
    those after the mask; that one may have size 1, which serves all places.
    """
    data, mask, value = op.operands(3)
    start, covered = op.int("start_axis", 0), op.rank_of(mask)
    aligned = _aligned(op, data, mask)
    lacking = op.rank_of(data) - covered + 1 - op.rank_of(value)
    if lacking < 0:
        op.invalid("has more axes than what the mask selects")
    if lacking:
        value = op.emit("Unsqueeze", value, [*range(lacking)])
    if value.shape is not None and value.shape[start] == 1:
        axes = vector(op, *range(start, start + covered))
        value = op.emit("Squeeze", value, [start])
        return op.where(aligned, op.emit("Unsqueeze", value, axes), data)
    # The i-th selected place takes the i-th slice of the value.
    truth = op.cast(flattened(op, is_true(op, mask)), np.int64)
    order = op.emit("CumSum", truth, op.constant(0, np.int64), exclusive=1)
    last = op.emit("Shape", value, start=start, end=start + 1) - vector(op, 1)
    order = op.emit("Max", op.emit("Min", order, last), [0])
    order = op.emit("Reshape", order, op.emit("Shape", mask), allowzero=1)
    return op.where(aligned, op.emit("Gather", value, order, axis=start), data)


@table.register("_npx_nonzero")
def nonzero(op: Operation) -> Value:
    """Return the positions (count, rank) of the elements that are not 0, as int64."""
    data = op.inputs[0]
    truth = is_true(op, data)
    if op.rank_of(data) == 0:
        truth = reshaped(op, truth, [1])
    return op.emit("Transpose", op.emit("NonZero", truth), perm=[1, 0])


@table.register("_npi_unique")
def unique(op: Operation) -> Value | list[Value]:
    """Sort the distinct elements, or distinct slices of ``axis``.

    ``return_index``, ``return_inverse`` and ``return_counts`` add the first position of each,
    the place of each element in the result, and how often each occurs.
    """
    data, axis = op.inputs[0], op.optional_int("axis")
    if op.rank_of(data) == 0:
        data = reshaped(op, data, [1])
    if axis is not None:
        axis = op.axis(data, axis)
    if data.shape is not None and 0 in data.shape:
        found = [flattened(op, data) if axis is None else data]
        found += [op.constant(np.zeros(0, np.int64))] * 3
    else:
        found = op.emit("Unique", data, axis=axis, sorted=1, outputs=4)
    names = ("return_index", "return_inverse", "return_counts")
    extra = [value for value, name in zip(found[1:], names, strict=True) if op.bool(name, False)]
    return [found[0], *extra]
