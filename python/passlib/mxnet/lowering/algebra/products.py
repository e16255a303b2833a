"""Products of arrays as NumPy defines them: dot, matmul, tensordot."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, reshaped, reshaped_to, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.table import table


def contracted(
    op: Operation, a: Value, b: Value, a_axes: Sequence[int], b_axes: Sequence[int]
) -> Value:
    """Sum products over pairs of axes; the free axes of a come before those of b."""
    if len(a_axes) != len(b_axes):
        raise Misfit(f"{len(a_axes)} axes are summed with {len(b_axes)}")
    summed = [op.axis(a, axis) for axis in a_axes]
    others = [op.axis(b, axis) for axis in b_axes]
    if len({*summed}) != len(summed) or len({*others}) != len(others):
        raise Misfit("an axis is summed twice")
    a_free = [axis for axis in range(op.rank_of(a)) if axis not in summed]
    b_free = [axis for axis in range(op.rank_of(b)) if axis not in others]
    sizes = [extent(op, a, axis) for axis in a_free] + [extent(op, b, axis) for axis in b_free]
    rows = _matrix(op, a, [*a_free, *summed], len(a_free))
    columns = _matrix(op, b, [*others, *b_free], len(others))
    if rows.shape is not None and rows.shape[1] == 0:
        return op.emit("Expand", op.constant_like(0, a), concatenated(op, sizes))
    return reshaped_to(op, op.emit("MatMul", rows, columns), sizes)


def _matrix(op: Operation, value: Value, order: list[int], split: int) -> Value:
    """Transpose to an order of axes and merge those before and after ``split``."""
    if order != sorted(order):
        value = op.emit("Transpose", value, perm=order)
    axes = range(len(order))
    return reshaped(op, value, [tuple(axes[:split]), tuple(axes[split:])])


@table.register("_np_dot")
def dot(op: Operation) -> Value:
    """Sum over the last axis of the first input and the last but one of the second.

    An input without axes multiplies the other.
    """
    a, b = op.operands(2)
    if not op.rank_of(a) or not op.rank_of(b):
        return op.emit("Mul", a, b)
    return contracted(op, a, b, [-1], [-min(op.rank_of(b), 2)])


@table.register("_npi_matmul")
def matmul(op: Operation) -> Value:
    """Multiply matrices in the last two axes; the others broadcast, a vector is a row or column."""
    a, b = op.operands(2)
    for value in (a, b):
        op.require_rank(value, least=1)
    if op.rank_of(a) == 1 or op.rank_of(b) <= 2:
        if op.rank_of(a) > 1 or op.rank_of(b) <= 2:
            return contracted(op, a, b, [-1], [-min(op.rank_of(b), 2)])
        a = op.emit("Unsqueeze", a, vector(op, 0))
        return op.emit("Squeeze", op.emit("MatMul", a, b), vector(op, -2))
    return op.emit("MatMul", a, b)


@table.register("_npi_tensordot")
def tensordot(op: Operation) -> Value:
    """Sum over the axes ``a_axes_summed`` and ``b_axes_summed``, pair by pair."""
    a, b = op.operands(2)
    return contracted(op, a, b, op.ints("a_axes_summed"), op.ints("b_axes_summed"))


@table.register("_npi_tensordot_int_axes")
def tensordot_of_last(op: Operation) -> Value:
    """Sum over the last ``axes`` axes of the first input and the first ones of the second."""
    a, b = op.operands(2)
    count = op.int("axes")
    if not 0 <= count <= min(op.rank_of(a), op.rank_of(b)):
        op.invalid("is not a number of axes that both inputs have", "axes")
    rank = op.rank_of(a)
    return contracted(op, a, b, range(rank - count, rank), range(count))
