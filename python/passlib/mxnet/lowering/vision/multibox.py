"""Anchors and detections of single-shot detectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, places, reshaped_to, vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.vision.boxes import around
from passlib.mxnet.lowering.vision.suppression import ordered_by, picked, survivors


@table.register("_contrib_MultiBoxPrior", "_npx_multibox_prior")
def multibox_prior(op: Operation) -> Value:
    """Create anchors for all positions of a map (N, C, H, W, ...): (1, H * W * A, 4) in 0 .. 1.

    A = sizes + ratios - 1: each size with the first ratio, then the first size with the other
    ratios. The width is size * H / W * sqrt(ratio), the height size / sqrt(ratio).
    """
    (data,) = op.operands(1)
    op.require_rank(data, least=4)
    sizes, ratios = op.floats("sizes", (1.0,)), op.floats("ratios", (1.0,))
    steps, offsets = op.floats("steps", (-1.0, -1.0)), op.floats("offsets", (0.5, 0.5))
    if not sizes or not ratios or min(ratios) <= 0 or len(steps) != 2 or len(offsets) != 2:
        op.unsupported("needs sizes, positive ratios, two steps and two offsets")
    height, width = (None, None) if data.shape is None else data.shape[2:4]
    if height is None or width is None:
        return _anchors_of_open_map(op, data, steps, offsets)
    if not height or not width:
        raise Misfit("a map without positions has no anchors")
    step_y = steps[0] if steps[0] > 0 else 1 / height
    step_x = steps[1] if steps[1] > 0 else 1 / width
    half = _half_sizes(sizes, ratios) * [height / width, 1]
    op.affordable(height, width, len(half), 4)
    x = (np.arange(width) + offsets[1]) * step_x
    y = (np.arange(height) + offsets[0]) * step_y
    center = np.stack(np.meshgrid(x, y), axis=-1)[:, :, None]
    anchors = np.concatenate([center - half, center + half], axis=-1).reshape(1, -1, 4)
    if op.bool("clip", False):
        anchors = anchors.clip(0, 1)
    return op.constant_like(anchors, data)


def _half_sizes(sizes: Sequence[float], ratios: Sequence[float]) -> np.ndarray:
    """Return half the width (of a square map) and half the height of each anchor, (A, 2)."""
    shapes = [(size, ratios[0]) for size in sizes] + [(sizes[0], ratio) for ratio in ratios[1:]]
    return np.array([(size * ratio**0.5 / 2, size / ratio**0.5 / 2) for size, ratio in shapes])


def _anchors_of_open_map(
    op: Operation, data: Value, steps: Sequence[float], offsets: Sequence[float]
) -> Value:
    """Compute the anchors of `multibox_prior` at run time, in float32."""
    real = np.dtype(np.float32)
    height, width = (op.cast(extent(op, data, axis), real) for axis in (2, 3))
    y, x = (
        op.emit(
            "Mul",
            op.emit("Add", op.cast(places(op, data, axis), real), op.constant(offset, real)),
            op.constant(step, real) if step > 0 else op.emit("Reciprocal", size),
        )
        for axis, offset, step, size in (
            (2, offsets[0], steps[0], height),
            (3, offsets[1], steps[1], width),
        )
    )
    ratio = op.emit("Concat", op.emit("Div", height, width), op.constant([1], real), axis=0)
    sizes, ratios = op.floats("sizes", (1.0,)), op.floats("ratios", (1.0,))
    half = op.emit("Mul", op.constant(_half_sizes(sizes, ratios), real), ratio)
    grid = concatenated(op, [extent(op, data, 2), extent(op, data, 3), vector(op, 1, 1)])
    rows = op.emit("Expand", op.emit("Reshape", y, vector(op, -1, 1, 1, 1)), grid)
    columns = op.emit("Expand", op.emit("Reshape", x, vector(op, 1, -1, 1, 1)), grid)
    center = op.emit("Concat", columns, rows, axis=3)
    sides = [op.emit(kind, center, half) for kind in ("Sub", "Add")]
    anchors = op.emit("Reshape", op.emit("Concat", *sides, axis=3), vector(op, 1, -1, 4))
    if op.bool("clip", False):
        anchors = op.emit("Clip", anchors, op.constant(0, real), op.constant(1, real))
    return op.cast(anchors, op.dtype_of(data))


@table.register("_contrib_MultiBoxDetection", "_npx_multibox_detection")
def multibox_detection(op: Operation) -> Value:
    """Turn class scores and offsets into detections.

    ``cls_prob`` (B, classes + 1, N), ``loc_pred`` (B, 4 * N) and ``anchor`` (1, N, 4) to (B, N, 6)
    rows of class, score and corners, best first. Each anchor takes its best class other than the
    background; if its score is below ``threshold``, its row is -1. If a better row of its class
    (of any class with ``force_suppress``) overlaps a row by more than ``nms_threshold``, only its
    class becomes -1. Only the best ``nms_topk`` take part; later rows have class -1 and stay in
    the order of the anchors, as all rows do if the threshold is not above 0 and at most 1.
    """
    scores, offsets, anchors = op.operands(3)
    op.require_rank(scores, 3)
    classes, count = op.size_of(scores, 1), extent(op, scores, 2)
    background = op.int("background_id", 0)
    if background != 0:
        op.unsupported("only class 0 can be the background", "background_id")
    bounds = (vector(op, bound) for bound in (1, classes, 1))
    best, kind = op.emit(
        "TopK",
        op.emit("Slice", scores, *bounds),
        vector(op, 1),
        outputs=2,
        axis=1,
    )
    one = vector(op, 1)
    best, kind = op.emit("Squeeze", best, one), op.emit("Squeeze", kind, one)
    rows_of_four = [extent(op, scores, 0), count, vector(op, 4)]
    box = _decoded(op, reshaped_to(op, offsets, rows_of_four), anchors)

    valid = op.emit("Not", op.emit("Less", best, _like(op, op.float("threshold", 0.01), best)))
    turn = op.emit("Unsqueeze", places(op, scores, 2), vector(op, 0))
    place = op.cast(op.emit("Sub", count, turn), op.dtype_of(best))
    last = _like(op, -np.inf, best)
    columns = [op.cast(kind, op.dtype_of(best)), best]
    rows = op.emit("Concat", *(_column(op, value) for value in columns), box, axis=2)
    found = ordered_by(op, op.emit("Where", valid, place, last), count)
    threshold = op.float("nms_threshold", 0.5)
    if not 0 < threshold <= 1:
        return _masked(op, picked(op, valid, found), picked(op, rows, found))

    order = ordered_by(op, op.emit("Where", valid, best, last), count)
    valid, ranked = picked(op, valid, order), picked(op, rows, order)
    competing = valid
    limit = op.int("nms_topk", -1)
    if limit > 0:
        inside = op.emit("Less", turn, vector(op, limit))
        competing = op.emit("And", valid, inside)
        ranked = op.emit("Where", _column(op, inside), ranked, picked(op, rows, found))
    kind, _, *sides = (
        op.emit("Gather", ranked, op.constant(index, "int64"), axis=2) for index in range(6)
    )
    compared = None if op.bool("force_suppress", False) else kind
    kept = survivors(op, sides, competing, threshold=threshold, classes=compared)
    kind = _column(op, op.emit("Where", kept, kind, _like(op, -1, kind)))
    bounds = (vector(op, bound) for bound in (1, 6, 2))
    ranked = op.emit("Concat", kind, op.emit("Slice", ranked, *bounds), axis=2)
    return _masked(op, valid, ranked)


def _column(op: Operation, value: Value) -> Value:
    return op.emit("Unsqueeze", value, vector(op, 2))


def _masked(op: Operation, valid: Value, rows: Value) -> Value:
    return op.emit("Where", _column(op, valid), rows, _like(op, -1, rows))


def _decoded(op: Operation, offsets: Value, anchors: Value) -> Value:
    """Move and scale anchors by offsets times variances: corners (B, N, 4)."""
    variances = op.floats("variances", (0.1, 0.1, 0.2, 0.2))
    scaled = op.emit("Mul", offsets, _like(op, variances, offsets))
    first, last = _halves(op, anchors)
    size = op.emit("Sub", last, first)
    center = op.emit("Mul", op.emit("Add", first, last), _like(op, 0.5, anchors))
    moves, growth = _halves(op, scaled)
    center = op.emit("Add", op.emit("Mul", moves, size), center)
    box = around(op, center, op.emit("Mul", op.emit("Exp", growth), size))
    if not op.bool("clip", True):
        return box
    return op.emit("Clip", box, _like(op, 0, box), _like(op, 1, box))


def _halves(op: Operation, rows: Value) -> list[Value]:
    return op.emit("Split", rows, outputs=2, axis=2, num_outputs=2)


def _like(op: Operation, number: object, value: Value) -> Value:
    return op.constant_like(np.asarray(number), value)
