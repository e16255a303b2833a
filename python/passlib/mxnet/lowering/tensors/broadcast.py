"""Broadcasting of axes of size 1: ``broadcast_to``, ``broadcast_axis``, ``broadcast_like``."""

from __future__ import annotations

from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import concatenated, extent, numbers_or_none, vector
from passlib.mxnet.lowering.table import table


@table.register("broadcast_to")
def broadcast_to(op: Operation) -> Value:
    """Broadcast to ``shape`` of the same rank; 0 keeps the size of an axis."""
    data, shape = op.inputs[0], op.ints("shape", ())
    if len(shape) != op.rank_of(data):
        op.invalid(f"differs in rank from the input, {describe(data)}", "shape")
    # ONNX broadcasts in both directions, so 1 keeps a size.
    return op.emit("Expand", data, vector(op, *(size or 1 for size in shape)))


@table.register("broadcast_axis", "broadcast_axes")
def broadcast_axis(op: Operation) -> Value:
    """Broadcast each of ``axis`` to the corresponding ``size``."""
    data = op.inputs[0]
    axes, sizes = numbers_or_none(op, "axis"), numbers_or_none(op, "size")
    if len(axes) != len(sizes):
        op.invalid(f"lists {len(axes)} axes for {len(sizes)} sizes", "axis")
    shape = [1] * op.rank_of(data)
    for axis, size in zip(axes, sizes, strict=True):
        shape[op.axis(data, axis)] = size
    return op.emit("Expand", data, vector(op, *shape))


@table.register("broadcast_like")
def broadcast_like(op: Operation) -> Value:
    """Broadcast to the shape of the second input, or ``lhs_axes`` to its ``rhs_axes``.

    Only one of the two is as good as none.
    """
    data, other = op.operands(2)
    left, right = op.optional_ints("lhs_axes"), op.optional_ints("rhs_axes")
    if left is None or right is None:
        return op.emit("Expand", data, op.emit("Shape", other))
    if len(left) != len(right):
        op.invalid(f"lists {len(left)} axes for {len(right)}", "lhs_axes")
    if not left:
        op.invalid("lists no axes", "lhs_axes")
    sizes = [vector(op, 1)] * op.rank_of(data)
    for mine, its in zip(left, right, strict=True):
        if mine is None or its is None:
            op.invalid("contains None", "lhs_axes")
        sizes[op.axis(data, mine)] = extent(op, other, op.axis(other, its))
    return op.emit("Expand", data, concatenated(op, sizes))
