"""Selection by truth values, positions of what is not 0, and distinct elements."""

from __future__ import annotations

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import flattened, reshaped, vector
from passlib.mxnet.lowering.numpy_operators.promotion import equal_types
from passlib.mxnet.lowering.real_arithmetic import is_true, number_of
from passlib.mxnet.lowering.table import table


@table.register("_npi_where")
def where(op: Operation) -> Value:
    """Select the second input where the condition is not 0, else the third; all broadcast."""
    condition, chosen, other = op.operands(3)
    equal_types(op, chosen, other)
    return op.emit("Where", is_true(op, condition), chosen, other)


@table.register("_npi_where_lscalar")
def where_left_number(op: Operation) -> Value:
    """Select ``scalar`` where the condition is not 0, else the second input."""
    condition, other = op.operands(2)
    number = number_of(op, "scalar", 0.0, op.dtype_of(other))
    return op.emit("Where", is_true(op, condition), number, other)


@table.register("_npi_where_rscalar")
def where_right_number(op: Operation) -> Value:
    """Select the second input where the condition is not 0, else ``scalar``."""
    condition, chosen = op.operands(2)
    number = number_of(op, "scalar", 0.0, op.dtype_of(chosen))
    return op.emit("Where", is_true(op, condition), chosen, number)


@table.register("_npi_where_scalar2")
def where_two_numbers(op: Operation) -> Value:
    """Select the number ``x`` where the condition is not 0, else ``y``, as float32."""
    single = np.dtype(np.float32)
    numbers = [number_of(op, name, 0.0, single) for name in "xy"]
    return op.emit("Where", is_true(op, op.inputs[0]), *numbers)


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
    """Replace what the mask selects from ``start_axis`` on by ``value``."""
    data, mask = op.operands(2)
    number = number_of(op, "value", 0.0, op.dtype_of(data))
    return op.emit("Where", _aligned(op, data, mask), number, data)


@table.register("_npi_boolean_mask_assign_tensor")
def boolean_mask_assign_tensor(op: Operation) -> Value:
    """Replace what the mask selects from ``start_axis`` on by the third input.

    Its axes are those before ``start_axis``, one for the selected places in their order, and
    those after the mask; that one may have size 1, which serves all places.
    """
    data, mask, value = op.operands(3)
    start, covered = op.int("start_axis", 0), op.rank_of(mask)
    aligned = _aligned(op, data, mask)
    rank = op.rank_of(data) - covered + 1
    lacking = rank - op.rank_of(value)
    if lacking < 0:
        op.invalid("has more axes than what the mask selects")
    if lacking:
        value = op.emit("Unsqueeze", value, vector(op, *range(lacking)))
    if value.shape is not None and value.shape[start] == 1:
        axes = vector(op, *range(start, start + covered))
        value = op.emit("Squeeze", value, vector(op, start))
        return op.emit("Where", aligned, op.emit("Unsqueeze", value, axes), data)
    # The i-th selected place takes the i-th slice of the value.
    truth = op.cast(flattened(op, is_true(op, mask)), np.int64)
    order = op.emit("CumSum", truth, op.constant(0, np.int64), exclusive=1)
    count = op.emit("Shape", value, start=start, end=start + 1)
    last = op.emit("Sub", count, vector(op, 1))
    order = op.emit("Max", op.emit("Min", order, last), vector(op, 0))
    order = op.emit("Reshape", order, op.emit("Shape", mask), allowzero=1)
    return op.emit("Where", aligned, op.emit("Gather", value, order, axis=start), data)


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
