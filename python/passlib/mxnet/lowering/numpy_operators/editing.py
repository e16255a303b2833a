"""Insertion, deletion and padding along an axis."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, concatenated, extent, flattened, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.real_arithmetic import number_of
from passlib.mxnet.lowering.table import table


def _line(op: Operation) -> tuple[Value, int]:
    """Return the array and the axis to edit; the flattened array without an axis."""
    data, axis = op.inputs[0], op.optional_int("axis")
    if axis is None or op.rank_of(data) == 0:
        return flattened(op, data), 0
    return data, op.axis(data, axis)


def _sliced(op: Operation, size: int) -> np.ndarray:
    """Return the places that the attributes ``start``, ``stop`` and ``step`` select."""
    bounds = (op.optional_int(name) for name in ("start", "stop", "step"))
    return np.arange(size)[slice(*bounds)]


def _values(op: Operation, data: Value) -> tuple[Value, list[Value]]:
    """Return what to insert, in the array's type, and the inputs after it."""
    if op.optional_float("val") is not None:
        return number_of(op, "val", 0.0, op.dtype_of(data)), op.inputs[1:]
    values, *rest = op.inputs[1:]
    return op.cast(values, op.dtype_of(data)), rest


def _raised(op: Operation, values: Value, rank: int) -> Value:
    lacking = rank - op.rank_of(values)
    if lacking < 0:
        if any(size != 1 for size in op.sizes_of(values)[:-lacking]):
            raise Misfit("the values have more axes than the array")
        return op.emit("Squeeze", values, vector(op, *range(-lacking)))
    return op.emit("Unsqueeze", values, vector(op, *range(lacking))) if lacking else values


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
    return op.emit("Slice", data, *(vector(op, number) for number in (0, place, axis)))


def _from(op: Operation, data: Value, axis: int, place: int) -> Value:
    return op.emit("Slice", data, *(vector(op, number) for number in (place, LAST, axis)))


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
    joined = op.emit("Concat", data, values, axis=axis)
    return op.emit("Gather", joined, vector(op, *order), axis=axis)


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
    negative = op.emit("Less", places, vector(op, 0))
    places = op.emit("Where", negative, op.emit("Add", places, size), places)
    # Element j is numbered 2 j + 1, an insertion before it 2 j; the order of numbers is stable.
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    own = op.emit("Range", zero, op.emit("Squeeze", size, vector(op, 0)), one)
    own = op.emit("Add", op.emit("Mul", own, vector(op, 2)), vector(op, 1))
    inserted = op.emit("Expand", op.emit("Mul", places, vector(op, 2)), count)
    numbers = op.emit("Concat", own, inserted, axis=0)
    total = extent(op, numbers, 0)
    order = op.emit("TopK", numbers, total, axis=0, largest=0, sorted=1, outputs=2)[1]
    joined = op.emit("Concat", data, values, axis=axis)
    return op.emit("Gather", joined, order, axis=axis)


@table.register("_npi_delete")
def delete(op: Operation) -> Value:
    """Delete from ``axis`` a slice if it has a ``step``, ``int_ind``, or what the input lists."""
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
        return op.emit("Gather", data, vector(op, *kept), axis=axis)
    places = op.cast(flattened(op, op.inputs[1]), np.int64)
    column = op.emit("Unsqueeze", places, vector(op, 1))
    ones = op.emit("Expand", op.constant(1, np.int64), extent(op, data, axis))
    zeros = op.emit("Expand", op.constant(0, np.int64), op.emit("Shape", places))
    marks = op.emit("ScatterND", ones, column, zeros)
    left = op.emit("Squeeze", op.emit("NonZero", marks), vector(op, 0))
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
    return op.emit("Pad", data, vector(op, *numbers), filling)


def _pad_by_place(mode: str, op: Operation, data: Value, widths: list[tuple[int, int]]) -> Value:
    """Copy elements of the same line: NumPy's padding of the places finds them."""
    given = data
    for axis, width in enumerate(widths):
        if not any(width):
            continue
        if op.sizes_of(given)[axis] is None and mode != "symmetric":
            data = op.emit("Pad", data, vector(op, *width), None, vector(op, axis), mode=mode)
            continue
        size = op.size_of(given, axis)
        if not size:
            raise Misfit(f"axis {axis} of size 0 has no elements to pad with")
        op.affordable(size + sum(width))
        places = np.pad(np.arange(size), width, mode=mode)  # type: ignore[call-overload]
        data = op.emit("Gather", data, vector(op, *places), axis=axis)
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
