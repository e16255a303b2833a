"""Correlation of two feature maps over displacements."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.padding import pad_spatial
from passlib.mxnet.lowering.table import table


@table.register("Correlation")
def correlation(op: Operation) -> Sequence[Value]:
    """Compare windows of two maps (N, C, H, W) at all displacements: (N, D * D, h, w).

    D = 2 * (max_displacement // stride2) + 1. The result is the mean of products, or of absolute
    differences without ``is_multiply``. Two hidden outputs hold the padded maps.
    """
    first, second = op.operands(2)
    batch, channels, height, width = op.shape_of(first, 4)
    kernel, reach = op.int("kernel_size", 1), op.int("max_displacement", 1)
    stride, step, pad = op.int("stride1", 1), op.int("stride2", 1), op.int("pad_size", 0)
    if kernel % 2 == 0 or min(stride, step) < 1:
        op.invalid("needs an odd kernel and positive strides", "kernel_size")
    border = reach + (kernel - 1) // 2
    padded = [size + 2 * pad for size in (height, width)]
    found = [-(-(size - 2 * border) // stride) for size in padded]
    if min(found) < 1:
        op.invalid(f"maps of {height} x {width} leave no window", "max_displacement")
    extents = [(count - 1) * stride + kernel for count in found]
    maps = [pad_spatial(op, value, [pad] * 4, 0.0) for value in (first, second)]
    radius = reach // step
    moves = [index * step for index in range(-radius, radius + 1)]
    fixed = _window(op, maps[0], (reach, reach), extents)
    compared = []
    for down in moves:
        for across in moves:
            moved = _window(op, maps[1], (reach + down, reach + across), extents)
            if op.bool("is_multiply", True):
                both = op.emit("Mul", fixed, moved)
            else:
                both = op.emit("Abs", op.emit("Sub", fixed, moved))
            compared.append(op.emit("ReduceMean", both, vector(op, 1), keepdims=1))
    joined = op.emit("Concat", *compared, axis=1) if len(compared) > 1 else compared[0]
    if (kernel, stride) != (1, 1):
        joined = op.emit("AveragePool", joined, kernel_shape=[kernel] * 2, strides=[stride] * 2)
    shape = (batch, *padded, channels)
    why = "the padded maps are not provided"
    return joined, *(op.declare(first.dtype, shape, why) for _ in range(2))


def _window(op: Operation, value: Value, start: tuple[int, int], extents: Sequence[int]) -> Value:
    stop = [first + extent for first, extent in zip(start, extents, strict=True)]
    return op.emit("Slice", value, vector(op, *start), vector(op, *stop), vector(op, 2, 3))
