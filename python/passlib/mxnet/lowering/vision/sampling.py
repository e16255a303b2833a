"""Sampling of feature maps at computed positions: the parts of a spatial transformer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table


@table.register("GridGenerator")
def grid_generator(op: Operation) -> Sequence[Value]:
    """Compute a grid (N, 2, H, W) of sampling positions: x and y, from -1 to 1 over the image.

    ``affine``: data (N, 6) are the rows of a matrix applied to (x, y, 1) over ``target_shape``.
    ``warp``: data (N, 2, H, W) are displacements in elements. The hidden second output is the
    regular grid before displacement or transformation.
    """
    (data,) = op.operands(1)
    why = "the regular grid is not provided"
    if op.string("transform_type", choices=("affine", "warp")) == "affine":
        height, width = _target(op)
        hidden = op.declare(data.dtype, (3, height * width), why)
        return _affine_grid(op, data, height, width), hidden
    op.require_rank(data, 4)
    height, width = op.size_of(data, 2), op.size_of(data, 3)
    if height < 2 or width < 2:
        op.unsupported("a grid must span at least two elements along each axis")
    op.affordable(2, height, width)
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    places = op.emit("Add", data, op.constant_like(np.stack([columns, rows])[None], data))
    half = np.array([width - 1, height - 1]).reshape(1, 2, 1, 1) / 2
    scaled = op.emit("Div", places, op.constant_like(half, data))
    grid = op.emit("Sub", scaled, op.constant_like(1, data))
    return grid, op.declare(data.dtype, (2, height, width), why)


@table.register("BilinearSampler")
def bilinear_sampler(op: Operation) -> Sequence[Value]:
    """Interpolate (N, C, H, W) at the positions of a grid (N, 2, h, w); zero outside.

    The result is (N, C, h, w). The hidden second output is scratch memory.
    """
    data, grid = op.operands(2)
    op.require_rank(grid, 4)
    shape = None if grid.shape is None else (grid.shape[0], *grid.shape[2:], 2)
    return _sampled(op, data, grid), op.declare(data.dtype, shape, "scratch memory is not provided")


@table.register("SpatialTransformer")
def spatial_transformer(op: Operation) -> Sequence[Value]:
    """Sample (N, C, H, W) on an affine grid of ``target_shape`` computed from (N, 6)."""
    data, matrix = op.operands(2)
    op.require_rank(data, 4)
    op.string("transform_type", choices=("affine",))
    op.string("sampler_type", choices=("bilinear",))
    height, width = _target(op)
    batch = None if data.shape is None else data.shape[0]
    why = "scratch memory is not provided"
    return (
        _sampled(op, data, _affine_grid(op, matrix, height, width)),
        op.declare(data.dtype, (3, height * width), why),
        op.declare(data.dtype, (batch, 2, height * width), why),
    )


def _target(op: Operation) -> tuple[int, int]:
    height, width = op.counted("target_shape", 2, default=(0, 0))
    if height < 2 or width < 2:
        op.unsupported("a grid must span at least two elements along each axis", "target_shape")
    return height, width


def _affine_grid(op: Operation, matrix: Value, height: int, width: int) -> Value:
    op.affordable(3, height, width)
    columns, rows = np.meshgrid(np.linspace(-1, 1, width), np.linspace(-1, 1, height))
    regular = np.stack([columns, rows, np.ones_like(rows)]).reshape(3, height * width)
    op.require_rank(matrix, op.rank_of(matrix), least=1)
    split = op.emit("Reshape", matrix, vector(op, -1, 2, 3))
    places = op.emit("MatMul", split, op.constant_like(regular, matrix))
    return op.emit("Reshape", places, vector(op, -1, 2, height, width))


def _sampled(op: Operation, data: Value, grid: Value) -> Value:
    places = op.emit("Transpose", grid, perm=[0, 2, 3, 1])
    return op.emit("GridSample", data, places, mode="linear", padding_mode="zeros", align_corners=1)
