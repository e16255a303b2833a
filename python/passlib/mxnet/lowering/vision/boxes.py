"""Bounding boxes: overlap, non-maximum suppression, anchors, region proposals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, TypeSpec, Value
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
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table


@table.register("_contrib_bipartite_matching")
def bipartite_matching(op: Operation) -> Sequence[Value]:
    """Match rows and columns of scores (..., N, M), best first: columns (..., N), rows (..., M).

    A pair counts if neither side is matched yet and its score is above ``threshold`` (below it
    with ``is_ascend``). ``topk`` ends the matching after one pair more than it states, as in
    MXNet 1.9.1. Unmatched sides are -1.
    """
    (data,) = op.operands(1)
    *lead, rows, columns = op.shape_of(data, least=2)
    dtype, count = op.dtype_of(data), rows * columns
    ascending = op.bool("is_ascend", False)
    flat = op.emit("Reshape", data, [-1, count])
    scores, places = op.emit("TopK", flat, [count], outputs=2, axis=1, largest=int(not ascending))
    threshold = op.constant_like(op.float("threshold"), scores)
    valid = op.emit("Less" if ascending else "Greater", scores, threshold)
    wide = op.constant(columns, "int64")
    sides = [places / wide, op.emit("Mod", places, wide)]
    batch = op.shape_of(flat)[0]
    most = op.int("topk", -1)
    starts = [np.full((batch, size), -1) for size in (rows, columns)]
    states = [op.constant(start, "int64") for start in (*starts, np.zeros((batch, 1)))]
    with op.body() as body:
        turn = body.input("turn", np.dtype(np.int64), ())
        goes_on = body.input("goes_on", np.dtype(bool), ())
        held = [body.input("state", value.dtype, value.shape) for value in states]
        at = op.emit("Reshape", turn, [1])
        pair = [op.emit("Gather", side, at, axis=1) for side in sides]
        free = op.emit("Gather", valid, at, axis=1)
        for matched, side in zip(held, pair, strict=False):
            free = free & (op.emit("GatherElements", matched, side, axis=1) < 0)
        if most > 0:
            free = free & (held[2] <= most)
        ends = []
        for matched, side, other in zip(held, pair, reversed(pair), strict=False):
            old = op.emit("GatherElements", matched, side, axis=1)
            ends.append(
                op.emit("ScatterElements", matched, side, op.where(free, other, old), axis=1)
            )
        ends.append(held[2] + op.cast(free, np.int64))
        body.output(goes_on)
        for end in ends:
            body.output(end)
    made = op.emit(
        "Loop",
        op.constant(count, "int64"),
        op.constant(True),
        *states,
        outputs=3,
        types=[TypeSpec(value.dtype, value.shape) for value in states],
        body=body.graph(),
    )
    return [
        op.cast(op.emit("Reshape", value, [*lead, size]), dtype)
        for value, size in zip(made, (rows, columns), strict=False)
    ]


def ordered_by(op: Operation, key: Value, count: Value) -> Value:
    """Return positions of the ``count`` largest of each row of (B, N); equals keep their order."""
    return op.emit("TopK", key, count, outputs=2, axis=1)[1]


def picked(op: Operation, rows: Value, order: Value) -> Value:
    """Take rows (B, N, ...) in the order (B, k)."""
    return op.emit("GatherND", rows, op.emit("Unsqueeze", order, [2]), batch_dims=1)


def area(op: Operation, sides: Sequence[Value]) -> Value:
    """Compute the area between left, top, right and bottom; zero if a box is inverted."""
    left, top, right, bottom = sides
    return _span(op, left, right) * _span(op, top, bottom)


def overlap(
    op: Operation, a: Sequence[Value], b: Sequence[Value], a_area: Value, b_area: Value
) -> Value:
    """Compute the intersection over union of boxes given by their sides; zero for empty unions."""
    shared, union = _shared_and_union(op, a, b, a_area, b_area)
    some = union > 0
    return op.where(some, shared / op.where(some, union, 1), 0)


def _shared_and_union(
    op: Operation, a: Sequence[Value], b: Sequence[Value], a_area: Value, b_area: Value
) -> tuple[Value, Value]:
    """Return the areas of the intersections and of the unions of boxes given by their sides."""
    first = [op.emit("Max", a[place], b[place]) for place in (0, 1)]
    last = [op.emit("Min", a[place], b[place]) for place in (2, 3)]
    shared = area(op, [*first, *last])
    return shared, a_area + b_area - shared


def survivors(
    op: Operation, sides: Sequence[Value], valid: Value, *, threshold: float, classes: Value | None
) -> Value:
    """Find the boxes that no better surviving box overlaps, given boxes sorted best first.

    Parameters
    ----------
    sides : sequence of Value
        Left, top, right, bottom, each (B, k).
    valid : Value
        (B, k), whether a box takes part.
    threshold : float
        A box is dropped if a better surviving one overlaps it by more.
    classes : Value or None
        (B, k); only boxes of equal class compete.

    Returns
    -------
    Value
        (B, k) of flags.
    """
    if valid.shape is not None and valid.shape[1] == 0:
        return valid
    size = area(op, sides)
    position = op.emit("Unsqueeze", places(op, valid, 1), [0])
    with op.body() as body:
        turn = body.input("turn", np.dtype(np.int64), ())
        goes_on = body.input("goes_on", np.dtype(bool), ())
        standing = body.input("standing", np.dtype(bool), valid.shape)
        at = op.emit("Reshape", turn, [1])

        def current(value: Value) -> Value:
            return op.emit("Gather", value, at, axis=1)

        best = [current(side) for side in sides]
        shared, union = _shared_and_union(op, sides, best, size, current(size))
        some = union > 0
        falls = some & (shared / op.where(some, union, 1) > threshold)
        if classes is not None:
            falls = falls & classes.equals(current(classes))
        falls = falls & (position > at) & current(standing)
        body.output(goes_on)
        body.output(standing & ~falls)
    return op.emit(
        "Loop",
        op.emit("Squeeze", extent(op, valid, 1), [0]),
        op.constant(True),
        valid,
        outputs=1,
        types=[TypeSpec(np.dtype(bool), valid.shape)],
        body=body.graph(),
    )[0]


def _span(op: Operation, start: Value, stop: Value) -> Value:
    return op.emit("Max", stop - start, 0)


@table.register("_contrib_box_iou")
def box_iou(op: Operation) -> Value:
    """Compute the intersection over union of all pairs: (..., 4) and (..., 4) to (..., ...)."""
    left, right = op.operands(2)
    lengths = [gathered_shape(op, v, range(op.rank_of(v) - 1)) for v in (left, right)]
    if op.string("format", "corner", choices=("corner", "center")) == "center":
        left, right = _corners(op, left), _corners(op, right)
    a = op.emit("Reshape", left, [-1, 1, 4])
    a_sides, b_sides = columns(op, a), columns(op, op.emit("Reshape", right, [1, -1, 4]))
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
    valid = score > op.float("valid_thresh", 0.0)
    background = op.int("background_id", -1)
    if classes >= 0 and background >= 0:
        valid = valid & ~_column(op, rows, classes).equals(background)

    limit = op.int("topk", -1)
    number = extent(op, data, rank - 2)
    if limit > 0:
        least = op.emit("Min", number, [limit])
        number = least if count is None else vector(op, min(limit, count))
    order = ordered_by(op, op.where(valid, score, -np.inf), number)
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
    place = op.cast(number - places(op, kept, 1), op.dtype_of(data))
    order = ordered_by(op, op.where(kept, place, -place), number)
    rows, kept = picked(op, rows, order), picked(op, kept, order)
    rows = op.where(op.emit("Unsqueeze", kept, [2]), rows, -1)
    if limit > 0 and (count is None or limit < count):
        left = extent(op, data, rank - 2) - number
        pads = concatenated(op, [vector(op, 0, 0, 0, 0), left, vector(op, 0)])
        rows = op.emit("Pad", rows, pads, -1)
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
    scale = np.array([op.float(f"std{index}", 1.0) for index in range(4)])
    offsets = data * scale
    moves, growth = _range(op, offsets, 0, 2), _range(op, offsets, 2, 4)
    center, size = _range(op, anchors, 0, 2), _range(op, anchors, 2, 4)
    limit = op.float("clip", -1.0)
    if limit > 0:
        growth = op.emit("Min", growth, limit)
    center = moves * size + center
    return around(op, center, op.emit("Exp", growth) * size)


@table.register("_contrib_box_encode")
def box_encode(op: Operation) -> Sequence[Value]:
    """Compute the offsets from anchors to their matched boxes, the inverse of `box_decode`.

    ``samples`` and ``matches`` are (B, N), ``anchors`` (B, N, 4) and ``refs`` (B, M, 4) are
    corners, ``means`` and ``stds`` are (4,). Outputs (B, N, 4): the offsets and a mask, both zero
    where the sample is not above 0.5.
    """
    samples, matches, anchors, boxes, means, deviations = op.operands(6)
    index = op.emit("Unsqueeze", op.cast(matches, "int64"), [2])
    matched = _centers(op, op.emit("GatherND", boxes, index, batch_dims=1))
    anchors = _centers(op, anchors)
    size = _range(op, anchors, 2, 4)
    moves = _range(op, matched, 0, 2) - _range(op, anchors, 0, 2)
    growth = op.emit("Log", _range(op, matched, 2, 4) / size)
    offsets = (op.emit("Concat", moves / size, growth, axis=2) - means) / deviations
    mask = op.emit("Unsqueeze", samples > 0.5, [2])
    wide = op.emit("Expand", mask, op.emit("Shape", offsets))
    zero = op.constant_like(0, offsets)
    return op.where(wide, offsets, zero), op.cast(wide, op.dtype_of(offsets))


def columns(op: Operation, box: Value) -> list[Value]:
    """Split boxes (..., 4) into their four numbers, without the last axis."""
    return [_column(op, box, index) for index in range(4)]


def around(op: Operation, center: Value, size: Value) -> Value:
    """Return the corners (..., 4) of boxes given by centers and sizes (..., 2)."""
    half = size * 0.5
    return op.emit("Concat", center - half, center + half, axis=-1)


def _column(op: Operation, rows: Value, index: int) -> Value:
    return op.emit("Gather", rows, op.constant(index, "int64"), axis=-1)


def _range(op: Operation, rows: Value, start: int, stop: int) -> Value:
    return op.emit("Slice", rows, [start], [stop], [-1])


def _corners(op: Operation, box: Value) -> Value:
    return around(op, _range(op, box, 0, 2), _range(op, box, 2, 4))


def _centers(op: Operation, box: Value) -> Value:
    first, last = _range(op, box, 0, 2), _range(op, box, 2, 4)
    return op.emit("Concat", (first + last) * 0.5, last - first, axis=-1)


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
        (op.cast(places(op, data, axis), real) + offset)
        * (op.constant(step, real) if step > 0 else op.emit("Reciprocal", size))
        for axis, offset, step, size in (
            (2, offsets[0], steps[0], height),
            (3, offsets[1], steps[1], width),
        )
    )
    ratio = op.emit("Concat", height / width, op.constant([1], real), axis=0)
    sizes, ratios = op.floats("sizes", (1.0,)), op.floats("ratios", (1.0,))
    half = _half_sizes(sizes, ratios) * ratio
    grid = concatenated(op, [extent(op, data, 2), extent(op, data, 3), vector(op, 1, 1)])
    rows = op.emit("Expand", op.emit("Reshape", y, [-1, 1, 1, 1]), grid)
    columns = op.emit("Expand", op.emit("Reshape", x, [1, -1, 1, 1]), grid)
    center = op.emit("Concat", columns, rows, axis=3)
    sides = [op.emit(kind, center, half) for kind in ("Sub", "Add")]
    anchors = op.emit("Reshape", op.emit("Concat", *sides, axis=3), [1, -1, 4])
    if op.bool("clip", False):
        anchors = op.emit("Clip", anchors, 0, 1)
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
    found = op.emit("Slice", scores, [1], [classes], [1])
    best, kind = op.emit("TopK", found, [1], outputs=2, axis=1)
    one = vector(op, 1)
    best, kind = op.emit("Squeeze", best, one), op.emit("Squeeze", kind, one)
    rows_of_four = [extent(op, scores, 0), count, vector(op, 4)]
    box = _decoded(op, reshaped_to(op, offsets, rows_of_four), anchors)

    valid = ~(best < op.float("threshold", 0.01))
    turn = op.emit("Unsqueeze", places(op, scores, 2), [0])
    place = op.cast(count - turn, op.dtype_of(best))
    columns = [op.cast(kind, op.dtype_of(best)), best]
    rows = op.emit("Concat", *(_target_column(op, value) for value in columns), box, axis=2)
    found = ordered_by(op, op.where(valid, place, -np.inf), count)
    threshold = op.float("nms_threshold", 0.5)
    if not 0 < threshold <= 1:
        return _masked(op, picked(op, valid, found), picked(op, rows, found))

    order = ordered_by(op, op.where(valid, best, -np.inf), count)
    valid, ranked = picked(op, valid, order), picked(op, rows, order)
    competing = valid
    limit = op.int("nms_topk", -1)
    if limit > 0:
        inside = turn < vector(op, limit)
        competing = valid & inside
        ranked = op.where(_target_column(op, inside), ranked, picked(op, rows, found))
    kind, _, *sides = (
        op.emit("Gather", ranked, op.constant(index, "int64"), axis=2) for index in range(6)
    )
    compared = None if op.bool("force_suppress", False) else kind
    kept = survivors(op, sides, competing, threshold=threshold, classes=compared)
    kind = _target_column(op, op.where(kept, kind, -1))
    bounds = (vector(op, bound) for bound in (1, 6, 2))
    ranked = op.emit("Concat", kind, op.emit("Slice", ranked, *bounds), axis=2)
    return _masked(op, valid, ranked)


def _target_column(op: Operation, value: Value) -> Value:
    return op.emit("Unsqueeze", value, [2])


def _masked(op: Operation, valid: Value, rows: Value) -> Value:
    return op.where(_target_column(op, valid), rows, -1)


def _decoded(op: Operation, offsets: Value, anchors: Value) -> Value:
    """Move and scale anchors by offsets times variances: corners (B, N, 4)."""
    scaled = offsets * np.array(op.floats("variances", (0.1, 0.1, 0.2, 0.2)))
    first, last = _halves(op, anchors)
    size = last - first
    center = (first + last) * 0.5
    moves, growth = _halves(op, scaled)
    center = moves * size + center
    box = around(op, center, op.emit("Exp", growth) * size)
    if not op.bool("clip", True):
        return box
    return op.emit("Clip", box, 0, 1)


def _halves(op: Operation, rows: Value) -> list[Value]:
    return op.emit("Split", rows, outputs=2, axis=2, num_outputs=2)


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
    score = op.emit("Slice", scores, [kinds], [both], [1])
    score = op.emit("Transpose", score, perm=[0, 2, 3, 1])
    score = op.emit("Reshape", score, [batch, count])
    rows, columns_, scale = (op.emit("Slice", images, [i], [i + 1], [1]) for i in range(3))
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
    kept = survivors(op, sides, everything, threshold=op.float("threshold", 0.7), classes=None)
    place = op.constant_like(np.arange(considered, 0, -1)[None], score)
    order = ordered_by(op, op.where(kept, place, -place), first)
    number = op.emit("ReduceSum", op.cast(kept, np.int64), [1], keepdims=1)
    number = op.emit("Min", number, wanted)
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
    first, last = _halves(op, moves)
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
    return op.emit("Max", op.emit("Min", box, limits), 0)


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
