"""Resizing of images."""

from __future__ import annotations

import numpy as np

from passlib.families.nnvm.lowering.layouts import DATA, axis_order, pair, transposed, uses_order
from passlib.families.nnvm.lowering.table import table
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector

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
