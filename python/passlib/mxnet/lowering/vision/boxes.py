"""Bounding boxes: overlap, non-maximum suppression, offsets from and to anchors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import (
    concatenated,
    extent,
    gathered_shape,
    places,
    reshaped,
    reshaped_like,
    reshaped_to,
    vector,
)
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.vision.suppression import (
    area,
    ordered_by,
    overlap,
    picked,
    survivors,
)


@table.register("_contrib_box_iou")
def box_iou(op: Operation) -> Value:
    """Compute the intersection over union of all pairs: (..., 4) and (..., 4) to (..., ...)."""
    left, right = op.operands(2)
    lengths = [gathered_shape(op, v, range(op.rank_of(v) - 1)) for v in (left, right)]
    if op.string("format", "corner", choices=("corner", "center")) == "center":
        left, right = _corners(op, left), _corners(op, right)
    a = op.emit("Reshape", left, vector(op, -1, 1, 4))
    b = op.emit("Reshape", right, vector(op, 1, -1, 4))
    a_sides, b_sides = columns(op, a), columns(op, b)
    ratio = overlap(op, a_sides, b_sides, area(op, a_sides), area(op, b_sides))
    return reshaped_to(op, ratio, lengths)


@table.register("_contrib_box_nms", "_contrib_box_non_maximum_suppression")
def box_nms(op: Operation) -> Sequence[Value]:
    """Keep the best of overlapping boxes: (..., N, K), shape unchanged.

    A row holds a score, four coordinates, optionally a class, and further columns. Rows with a
    score above ``valid_thresh`` and not of the background class are taken best first, at most
    ``topk``; each drops later rows of its class (of any class with ``force_suppress``, or without
    ``id_index``) that overlap it by more than ``overlap_thresh``. The remaining rows come first,
    the others are -1.
    """
    (data,) = op.operands(1)
    op.require_rank(data, least=2)
    rank, shape = op.rank_of(data), data.shape or ()
    count, width = shape[-2], op.size_of(data, -1)
    start, classes = op.int("coord_start", 2), op.int("id_index", -1)
    rows = data if rank == 3 else _three_axes(op, data)
    score = _column(op, rows, op.int("score_index", 1))
    valid = op.emit("Greater", score, op.constant_like(op.float("valid_thresh", 0.0), score))
    background = op.int("background_id", -1)
    if classes >= 0 and background >= 0:
        other = op.emit("Equal", _column(op, rows, classes), op.constant_like(background, score))
        valid = op.emit("And", valid, op.emit("Not", other))

    limit = op.int("topk", -1)
    number = extent(op, data, rank - 2)
    if limit > 0:
        least = op.emit("Min", number, vector(op, limit))
        number = least if count is None else vector(op, min(limit, count))
    order = ordered_by(op, op.emit("Where", valid, score, op.constant_like(-np.inf, score)), number)
    rows, valid = picked(op, rows, order), picked(op, valid, order)
    formats = [
        op.string(name, "corner", choices=("corner", "center"))
        for name in ("in_format", "out_format")
    ]
    box = _range(op, rows, start, start + 4)
    corner = _corners(op, box) if formats[0] == "center" else box
    compared = classes >= 0 and not op.bool("force_suppress", False)
    kept = survivors(
        op,
        columns(op, corner),
        valid,
        threshold=op.float("overlap_thresh", 0.5),
        classes=_column(op, rows, classes) if compared else None,
    )
    if formats[0] != formats[1]:
        written = corner if formats[1] == "corner" else _centers(op, box)
        parts = [(0, start, None), (start, start + 4, written), (start + 4, width, None)]
        rows = op.emit(
            "Concat",
            *(
                value or _range(op, rows, first, last)
                for first, last, value in parts
                if first < last
            ),
            axis=2,
        )
    turn = places(op, kept, 1)
    place = op.cast(op.emit("Sub", number, turn), op.dtype_of(data))
    order = ordered_by(op, op.emit("Where", kept, place, op.emit("Neg", place)), number)
    rows, kept = picked(op, rows, order), picked(op, kept, order)
    mask = op.emit("Unsqueeze", kept, vector(op, 2))
    rows = op.emit("Where", mask, rows, op.constant_like(-1, rows))
    if limit > 0 and (count is None or limit < count):
        left = op.emit("Sub", extent(op, data, rank - 2), number)
        pads = concatenated(op, [vector(op, 0, 0, 0, 0), left, vector(op, 0)])
        rows = op.emit("Pad", rows, pads, op.constant_like(-1, rows))
    result = reshaped_like(op, rows, data)
    scratch = op.declare(data.dtype, (*shape[:-1], 1), "scratch memory is not provided")
    return result, scratch


def _three_axes(op: Operation, data: Value) -> Value:
    """Reshape (..., N, K) to (B, N, K)."""
    rank = op.rank_of(data)
    return reshaped(op, data, [tuple(range(rank - 2)), (rank - 2,), (rank - 1,)])


@table.register("_contrib_box_decode")
def box_decode(op: Operation) -> Value:
    """Apply offsets (B, N, 4) to anchors (1, N, 4) and return corners (B, N, 4).

    Centers move by offset * std * size of the anchor; sizes are multiplied by
    exp(offset * std), the exponent limited to ``clip`` if that is positive.
    """
    data, anchors = op.operands(2)
    if op.string("format", "center", choices=("center", "corner")) == "corner":
        anchors = _centers(op, anchors)
    scale = [op.float(f"std{index}", 1.0) for index in range(4)]
    offsets = op.emit("Mul", data, op.constant_like(scale, data))
    moves, growth = _range(op, offsets, 0, 2), _range(op, offsets, 2, 4)
    center, size = _range(op, anchors, 0, 2), _range(op, anchors, 2, 4)
    limit = op.float("clip", -1.0)
    if limit > 0:
        growth = op.emit("Min", growth, op.constant_like(limit, data))
    center = op.emit("Add", op.emit("Mul", moves, size), center)
    return around(op, center, op.emit("Mul", op.emit("Exp", growth), size))


@table.register("_contrib_box_encode")
def box_encode(op: Operation) -> Sequence[Value]:
    """Compute the offsets from anchors to their matched boxes, the inverse of `box_decode`.

    ``samples`` and ``matches`` are (B, N), ``anchors`` (B, N, 4) and ``refs`` (B, M, 4) are
    corners, ``means`` and ``stds`` are (4,). Outputs (B, N, 4): the offsets and a mask, both zero
    where the sample is not above 0.5.
    """
    samples, matches, anchors, boxes, means, deviations = op.operands(6)
    index = op.emit("Unsqueeze", op.cast(matches, "int64"), vector(op, 2))
    matched = _centers(op, op.emit("GatherND", boxes, index, batch_dims=1))
    anchors = _centers(op, anchors)
    size = _range(op, anchors, 2, 4)
    moves = op.emit("Sub", _range(op, matched, 0, 2), _range(op, anchors, 0, 2))
    growth = op.emit("Log", op.emit("Div", _range(op, matched, 2, 4), size))
    raw = op.emit("Concat", op.emit("Div", moves, size), growth, axis=2)
    offsets = op.emit("Div", op.emit("Sub", raw, means), deviations)
    chosen = op.emit("Greater", samples, op.constant_like(0.5, samples))
    mask = op.emit("Unsqueeze", chosen, vector(op, 2))
    wide = op.emit("Expand", mask, op.emit("Shape", offsets))
    zero = op.constant_like(0, offsets)
    return op.emit("Where", wide, offsets, zero), op.cast(wide, op.dtype_of(offsets))


def columns(op: Operation, box: Value) -> list[Value]:
    """Split boxes (..., 4) into their four numbers, without the last axis."""
    return [_column(op, box, index) for index in range(4)]


def around(op: Operation, center: Value, size: Value) -> Value:
    """Return the corners (..., 4) of boxes given by centers and sizes (..., 2)."""
    half = op.emit("Mul", size, op.constant_like(0.5, size))
    return op.emit("Concat", op.emit("Sub", center, half), op.emit("Add", center, half), axis=-1)


def _column(op: Operation, rows: Value, index: int) -> Value:
    return op.emit("Gather", rows, op.constant(index, "int64"), axis=-1)


def _range(op: Operation, rows: Value, start: int, stop: int) -> Value:
    bounds = (vector(op, bound) for bound in (start, stop, -1))
    return op.emit("Slice", rows, *bounds)


def _corners(op: Operation, box: Value) -> Value:
    return around(op, _range(op, box, 0, 2), _range(op, box, 2, 4))


def _centers(op: Operation, box: Value) -> Value:
    first, last = _range(op, box, 0, 2), _range(op, box, 2, 4)
    half = op.emit("Mul", op.emit("Add", first, last), op.constant_like(0.5, box))
    return op.emit("Concat", half, op.emit("Sub", last, first), axis=-1)
