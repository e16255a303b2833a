"""Blocks of pixels moved to channels and back."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.real_arithmetic import is_real
from passlib.mxnet.lowering.table import table


@table.register("depth_to_space")
def depth_to_space(op: Operation) -> Value:
    """Turn (n, b b c, h, w) into (n, c, b h, b w), channels ordered by position in the block."""
    data, block = op.inputs[0], _block(op)
    _require_multiple(data, (1,), block**2)
    if is_real(op.dtype_of(data)):
        return op.emit("DepthToSpace", data, blocksize=block, mode="DCR")
    batch, depth, height, width = op.shape_of(data, 4)
    channels = depth // block**2
    apart = vector(op, batch, block, block, channels, height, width)
    turned = op.emit("Transpose", op.emit("Reshape", data, apart), perm=[0, 3, 4, 1, 5, 2])
    return op.emit("Reshape", turned, vector(op, batch, channels, block * height, block * width))


@table.register("space_to_depth")
def space_to_depth(op: Operation) -> Value:
    """Turn (n, c, b h, b w) into (n, b b c, h, w), the inverse of `depth_to_space`."""
    data, block = op.inputs[0], _block(op)
    _require_multiple(data, (2, 3), block)
    if is_real(op.dtype_of(data)):
        return op.emit("SpaceToDepth", data, blocksize=block)
    batch, channels, height, width = op.shape_of(data, 4)
    rows, columns = height // block, width // block
    apart = vector(op, batch, channels, rows, block, columns, block)
    turned = op.emit("Transpose", op.emit("Reshape", data, apart), perm=[0, 3, 5, 1, 2, 4])
    return op.emit("Reshape", turned, vector(op, batch, block**2 * channels, rows, columns))


def _block(op: Operation) -> int:
    block = op.int("block_size")
    if block < 1:
        op.invalid("is not positive", "block_size")
    return block


def _require_multiple(data: Value, axes: Sequence[int], number: int) -> None:
    for axis in axes:
        size = data.shape[axis] if data.shape is not None and axis < len(data.shape) else None
        if size is not None and size % number:
            raise Misfit(f"the size {size} of axis {axis} is no multiple of {number}")
