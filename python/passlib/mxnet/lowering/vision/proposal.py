"""Region proposals of two-stage detectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.vision.boxes import columns, ordered_by, picked, survivors


@table.register("_contrib_Proposal", "_contrib_MultiProposal")
def proposal(op: Operation) -> Sequence[Value]:
    """Turn scores and offsets of anchors into regions.

    ``cls_prob`` (B, 2 * A, H, W), ``bbox_pred`` (B, 4 * A, H, W), ``im_info`` (B, 3): height,
    width and scale of each image; to (B * rpn_post_nms_top_n, 5) rows of image number and
    corners, and their scores (B * n, 1). If fewer boxes survive the suppression, they repeat.
    """
    scores, offsets, images = op.operands(3)
    batch, both, height, width = op.shape_of(scores, 4)
    anchors = _anchors(op)
    kinds, count = len(anchors), len(anchors) * height * width
    if both != 2 * kinds:
        op.unsupported(f"{kinds} anchors do not fit {both} scores", "scales")
    wanted = op.int("rpn_post_nms_top_n", 300)
    if wanted < 1:
        op.invalid("must be positive", "rpn_post_nms_top_n")
    considered = op.int("rpn_pre_nms_top_n", 6000)
    considered = min(considered, count) if considered > 0 else count
    stride = op.int("feature_stride", 16)
    op.affordable(height, width, kinds, 4)
    y, x = np.mgrid[:height, :width] * stride
    grid = (np.stack([x, y, x, y], axis=-1)[:, :, None] + anchors).reshape(1, count, 4)
    moves = op.emit("Reshape", offsets, [batch, kinds, 4, height, width])
    moves = op.emit("Transpose", moves, perm=[0, 3, 4, 1, 2])
    moves = op.emit("Reshape", moves, [batch, count, 4])
    score = op.emit("Slice", scores, *(vector(op, bound) for bound in (kinds, both, 1)))
    score = op.emit("Transpose", score, perm=[0, 2, 3, 1])
    score = op.emit("Reshape", score, [batch, count])
    rows, columns_, scale = (
        op.emit("Slice", images, *(vector(op, bound) for bound in (i, i + 1, 1))) for i in range(3)
    )
    boxes = _moved(op, grid, moves, rows, columns_)
    score = _without_padding(op, score, rows, columns_, (height, width, kinds, stride))
    boxes, score = _without_small(op, boxes, score, scale)

    first = vector(op, considered)
    order = ordered_by(op, score, first)
    boxes, score = picked(op, boxes, order), picked(op, score, order)
    sides = columns(op, boxes)
    one = op.constant_like(1, score)
    sides = [*sides[:2], *(side + one for side in sides[2:])]
    everything = op.emit("Expand", op.constant(True), [batch, considered])
    threshold = op.float("threshold", 0.7)
    kept = survivors(op, sides, everything, threshold=threshold, classes=None)
    place = op.constant_like(np.arange(considered, 0, -1)[None], score)
    order = ordered_by(op, op.where(kept, place, -place), first)
    number = op.emit("ReduceSum", op.cast(kept, np.int64), [1], keepdims=1)
    number = op.emit("Min", number, op.constant(wanted, "int64"))
    turn = op.emit("Mod", op.constant(np.arange(wanted)[None], "int64"), number)
    order = op.emit("GatherElements", order, turn, axis=1)
    boxes, score = picked(op, boxes, order), picked(op, score, order)
    image = op.constant_like(np.repeat(np.arange(batch), wanted).reshape(batch, wanted, 1), boxes)
    regions = op.emit("Concat", image, boxes, axis=2)
    return (op.emit("Reshape", regions, [-1, 5]), op.emit("Reshape", score, [-1, 1]))


def _anchors(op: Operation) -> np.ndarray:
    """Return the corners of the anchors at the first position: ratios, in each the scales."""
    stride, ratios = op.int("feature_stride", 16), op.floats("ratios", (0.5, 1.0, 2.0))
    if not all(0 < ratio < np.inf for ratio in ratios):
        op.invalid("must be positive", "ratios")
    center, size, found = (stride - 1) / 2, float(stride * stride), []
    for ratio in ratios:
        width = np.floor(np.sqrt(np.floor(size / ratio)) + 0.5)
        height = np.floor(width * ratio + 0.5)
        for scale in op.floats("scales", (4.0, 8.0, 16.0, 32.0)):
            half = (np.array([width, height]) * scale - 1) / 2
            found.append([*(center - half), *(center + half)])
    return np.array(found)


def _moved(op: Operation, grid: np.ndarray, moves: Value, rows: Value, columns: Value) -> Value:
    """Apply offsets to anchors and clip the boxes to their images: (B, count, 4)."""
    first, last = (
        op.emit("Slice", moves, *(vector(op, bound) for bound in (a, b, 2)))
        for a, b in ((0, 2), (2, 4))
    )
    sizes = grid[..., 2:] - grid[..., :2] + 1
    if op.bool("iou_loss", False):
        box = moves + grid
    else:
        size = op.constant_like(sizes, moves)
        center = op.constant_like(grid[..., :2] + (sizes - 1) / 2, moves)
        center = first * size + center
        half = op.emit("Exp", last) * size - 1
        half = half * 0.5
        box = op.emit("Concat", center - half, center + half, axis=2)
    limits = op.emit("Concat", columns, rows, columns, rows, axis=1)
    limits = op.emit("Unsqueeze", limits, [1]) - 1
    return op.emit("Max", op.emit("Min", box, limits), op.constant_like(0, box))


def _without_padding(
    op: Operation, score: Value, rows: Value, columns: Value, sizes: tuple[int, int, int, int]
) -> Value:
    """Set the score of anchors outside an image, in the padding of its batch, to -1."""
    height, width, kinds, stride = sizes
    inside = None
    places = np.broadcast_to(np.mgrid[:height, :width][..., None], (2, height, width, kinds))
    for place, size in zip(places, (rows, columns), strict=True):
        cells = op.emit("Floor", size / stride)
        valid = op.constant_like(place.reshape(1, -1), cells) < cells
        inside = valid if inside is None else inside & valid
    assert inside is not None
    return op.where(inside, score, -1)


def _without_small(op: Operation, boxes: Value, score: Value, scale: Value) -> tuple[Value, Value]:
    """Set the score of boxes below the least size to -1, and enlarge them as MXNet does."""
    least = scale * op.int("rpn_min_size", 16)
    left, top, right, bottom = columns(op, boxes)
    one = op.constant_like(1, left)
    small = op.emit("Or", *(b - a + one < least for a, b in ((left, right), (top, bottom))))
    half = least * 0.5
    signs = op.constant_like(np.array([-1, -1, 1, 1]), boxes)
    grown = boxes + op.emit("Unsqueeze", half, [2]) * signs
    boxes = op.where(op.emit("Unsqueeze", small, [2]), grown, boxes)
    return boxes, op.where(small, -1, score)
