"""Random nodes of operators that repeat, resize, scatter and split: part of opset_changes.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from operator_draws import B, D, Draw, F, J, L, Node, maker_of


@maker_of("MaxUnpool")
def _unpool(d: Draw) -> Node:
    return Node([d.real(1, 1, 2, 2), np.array([[[[0, 3], [9, 15]]]], L)],
                {"kernel_shape": [2, 2], "strides": [2, 2]})  # fmt: skip


@maker_of("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def _loss(d: Draw) -> Node:
    more = d.some(reduction=d.pick("none", "mean", "sum"), ignore_index=1)
    return Node([d.real(3, 5), d.whole(3)], more)


@maker_of("NonMaxSuppression")
def _suppress(d: Draw) -> Node:
    corners = d.real(1, 4, 2, low=0, high=1)
    boxes = np.concatenate([corners, corners + d.real(1, 4, 2, low=0.1, high=1)], 2)
    bounds = [np.array([3], L), np.array([0.5], F), np.array([0.1], F)]
    return Node([boxes, d.real(1, 2, 4, low=0, high=1), *bounds], d.some(center_point_box=1))


@maker_of("OneHot")
def _one_hot(d: Draw) -> Node:
    return Node(
        [d.whole(2, 3), np.array(d.pick(5, 6), L), d.real(2)], d.some(axis=d.pick(-1, 0, 1))
    )


@maker_of("Optional", "OptionalGetElement", "OptionalHasElement")
def _optional(d: Draw) -> Node:
    return Node([d.real(2)], {})


@maker_of("Pad")
def _pad(d: Draw) -> Node:
    x = d.array(3, 4, dtype=d.dtype(F, F, D, L, J))
    pads = [d.pick(0, 1, 2) for _ in range(4)]
    mode = d.some(mode=d.pick("constant", "edge", "reflect"))
    if d.chance(0.15) and d.opset >= 19:
        mode = {"mode": "wrap"}
    if d.has("paddings") or d.has("pads"):
        key = "paddings" if d.has("paddings") else "pads"
        return Node([x], {key: pads, **mode, **d.some(value=0.5)})
    inputs: list[Any] = [x, np.array(pads, L)]
    if d.chance():
        inputs.append(np.array(2, x.dtype) if d.chance() else None)
        if d.opset >= 18 and d.chance():
            axes = d.pick([0], [1], [-1])
            inputs[1] = np.array([1, 2], L)
            inputs.append(np.array(axes, d.pick(L, J)))
    return Node(inputs, mode)


@maker_of(
    "RandomNormal",
    "RandomUniform",
    "RandomNormalLike",
    "RandomUniformLike",
    "Multinomial",
    "Bernoulli",
)
def _random(d: Draw) -> Node:
    x = d.real(2, 3, low=0, high=1)
    if d.op == "Multinomial":
        return Node([x], {"sample_size": 4, "seed": 1.0})
    inputs = [] if d.op in ("RandomNormal", "RandomUniform") else [x]
    return Node(inputs, {"seed": 1.0, **d.all(shape=[2, 3])})


@maker_of("Range")
def _range(d: Draw) -> Node:
    dtype = d.dtype(F, D, L, J)
    return Node([np.array(n, dtype) for n in (1, 9, 2)], {})


@maker_of("Reshape")
def _reshape(d: Draw) -> Node:
    x = d.array(2, 3, 4, dtype=d.dtype(F, F, D, L, B))
    target = d.pick([6, 4], [-1, 4], [0, -1], [2, 0, 4], [24], [4, 3, 2])
    if d.has("shape"):
        return Node([x], {"shape": target, **d.some(consumed_inputs=[0])})
    more = d.some(allowzero=lambda: d.pick(0, 1)) if 0 not in target else {}
    if d.has("allowzero") and d.chance(0.2):
        return Node([np.zeros((0, 3), F), np.array([3, 0], L)], {"allowzero": 1})
    return Node([x, np.array(target, L)], more)


@maker_of("Resize")
def _resize(d: Draw) -> Node:
    x = d.real(1, 2, 5, 4)
    mode = d.pick("nearest", "linear")
    scales = np.array([1, 1, d.pick(2, 0.6, 1.5), d.pick(2, 0.75)], F)
    if d.opset < 11:
        return Node([x, scales], d.some(mode=mode))
    more = d.some(
        mode=d.pick("nearest", "linear", "cubic"),
        coordinate_transformation_mode=d.pick(
            "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"
        ),
        nearest_mode=d.pick("floor", "round_prefer_floor", "ceil"),
        cubic_coeff_a=-0.5,
        exclude_outside=0,
        antialias=lambda: d.pick(0, 0, 1),
    )
    if more.get("antialias") and more.get("mode") == "nearest":
        del more["antialias"]
    empty = np.zeros(0, F)
    roi = empty if d.opset < 13 or d.chance() else None
    if d.chance():
        return Node([x, roi, scales], more)
    sizes = np.array([1, 2, 8, 6], L)
    if d.opset >= 18 and d.chance(0.4):
        more.update(d.some(axes=[2, 3], keep_aspect_ratio_policy=d.pick("stretch", "not_larger")))
        sizes = sizes[2:] if "axes" in more else sizes
    return Node([x, roi, empty if d.opset < 13 else None, sizes], more)


@maker_of("ReverseSequence")
def _reverse(d: Draw) -> Node:
    more = {"batch_axis": 1, "time_axis": 0} if d.chance() else {}
    return Node([d.real(3, 3), np.array([1, 2, 3], L)], more)


@maker_of("Scatter", "ScatterElements")
def _scatter(d: Draw) -> Node:
    more = d.some(reduction=lambda: d.pick("none", "add", "mul"))
    indices = np.array([[2, 0, 1, 2]], L)
    return Node([d.real(3, 4), indices, d.real(1, 4)], {**d.some(axis=0), **more})


@maker_of("ScatterND")
def _scatter_nd(d: Draw) -> Node:
    names = ("none", "add", "mul", "max", "min") if d.opset >= 18 else ("none", "add", "mul")
    more = d.some(reduction=lambda: d.pick(*names))
    return Node([d.real(3, 4), np.array([[1], [2]], L), d.real(2, 4)], more)


@maker_of("Shape")
def _shape(d: Draw) -> Node:
    more = d.some(start=lambda: d.pick(-2, 0, 1), end=lambda: d.pick(-1, 2, 9))
    return Node([d.array(2, 3, 4, dtype=d.dtype(F, D, L, B))], more)


@maker_of("Slice")
def _slice(d: Draw) -> Node:
    x = d.array(4, 5, dtype=d.dtype(F, F, D, L, J, B))
    starts, ends, axes = d.pick(([1], [3], [1]), ([0, 1], [-1, 100], [0, 1]), ([-3], [4], [0]))
    if d.has("starts"):
        return Node(
            [x], {"starts": starts, "ends": ends, **({"axes": axes} if d.chance(0.8) else {})}
        )
    kind = d.pick(L, J)
    inputs: list[Any] = [x, *(np.array(each, kind) for each in (starts, ends))]
    if d.chance(0.8):
        inputs.append(np.array(axes, kind))
        if d.chance(0.4):
            steps = [d.pick(1, 2, -1) for _ in axes]
            inputs.append(np.array(steps, kind))
    return Node(inputs, {})


@maker_of("Split")
def _split(d: Draw) -> Node:
    x = d.array(4, 6, dtype=d.dtype(F, F, D, L, J))
    axis = d.pick(0, 1)
    sizes = d.pick([1, 3], [2, 2]) if axis == 0 else d.pick([2, 4], [3, 3])
    attributes = {"axis": axis}
    stated = d.chance(0.6)
    if d.opset == 1:
        return Node([x], {**attributes, "split": sizes}, 2)
    if d.has("split"):
        return Node([x], {**attributes, **({"split": sizes} if stated else {})}, 2)
    if stated:
        return Node([x, np.array(sizes, L)], attributes, 2)
    if d.has("num_outputs"):
        count = d.pick(2, 4)
        return Node([x], {**attributes, "num_outputs": count}, count)
    return Node([x], attributes, 2)


@maker_of("SplitToSequence")
def _split_sequence(d: Draw) -> Node:
    return Node([d.real(4, 3)], d.some(axis=1, keepdims=0))


@maker_of("Squeeze", "Unsqueeze")
def _squeeze(d: Draw) -> Node:
    x = d.array(1, 3, 1, dtype=d.dtype(F, F, D, L, B, np.uint8))
    axes = d.pick([0], [0, 2], [2])
    if d.opset >= 11 and d.chance(0.3):
        axes = [-1]
    if d.has("axes"):
        return Node([x], {} if d.op == "Squeeze" and d.chance(0.2) else {"axes": axes})
    if d.op == "Squeeze" and d.chance(0.2):
        return Node([x], {})
    return Node([x, np.array(axes, L)], {})


@maker_of("Tile")
def _tile(d: Draw) -> Node:
    x = d.array(2, 3, dtype=d.dtype(F, F, D, L, J, B))
    if d.opset < 6:
        return Node([x, np.array(2, x.dtype), np.array(1, x.dtype)], {})
    return Node([x, np.array([2, 3], L)], {})


@maker_of("TopK")
def _topk(d: Draw) -> Node:
    x = d.rng.permutation(12).reshape(3, 4).astype(d.dtype(F, D, L))
    more = d.some(axis=d.pick(-1, 0, 1), largest=lambda: d.pick(0, 1), sorted=1)
    if d.has("k"):
        return Node([x], {"k": 2, **more}, 2)
    return Node([x, np.array([2], L)], more, 2)


@maker_of("Transpose")
def _transpose(d: Draw) -> Node:
    x = d.array(2, 3, 4, dtype=d.dtype(F, F, D, L, B))
    return Node([x], d.some(perm=[int(n) for n in d.rng.permutation(3)]))


@maker_of("Unique")
def _unique(d: Draw) -> Node:
    return Node([d.whole(8).astype(F)], d.some(sorted=1), d.pick(1, 4))


@maker_of("Upsample")
def _upsample(d: Draw) -> Node:
    x, mode = (
        d.real(1, 2, 3, 4),
        d.some(mode=d.pick("nearest", "linear") if d.opset > 1 else "nearest"),
    )
    if d.has("height_scale"):
        return Node([x], {"height_scale": 2.0, "width_scale": 3.0, **mode})
    if d.has("scales"):
        return Node([x], {"scales": [1.0, 1.0, 2.0, 3.0], **mode})
    return Node([x, np.array([1, 1, 2, 3], F)], mode)


@maker_of("Where")
def _where(d: Draw) -> Node:
    dtype = d.dtype(F, F, D, L, np.uint8, number=1)
    return Node(
        [np.array([True, False, True]), d.array(2, 3, dtype=dtype), d.array(1, dtype=dtype)], {}
    )


@maker_of("Attention")
def _attention(d: Draw) -> Node:
    more = d.some(is_causal=1, scale=0.3, softcap=2.0)
    return Node([d.real(1, 2, 3, 4), d.real(1, 2, 5, 4), d.real(1, 2, 5, 4)], more)
