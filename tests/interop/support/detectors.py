"""Small detectors and a sequence model, composed with MXNet, with arrays to run them on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mxnet as mx
import numpy as np

from cases_tensor_spec import of, real

S = mx.sym
Made = tuple[str, Any, dict[str, np.ndarray]]


def models() -> Iterator[Made]:
    """Yield the name, symbol and arrays of each model."""
    for name, symbol, given in (
        ("two_stage", two_stage(), {"data": real(1, 3, 12, 12), "info": of([48, 48, 1])}),
        ("position_sensitive", position_sensitive(), {"data": real(1, 3, 10, 9), "rois": ROIS}),
        ("single_shot", single_shot(), {"data": real(2, 3, 8, 8)}),
        ("flow", flow(), {"left": real(1, 3, 9, 8), "right": real(1, 3, 9, 8, low=-1)}),
        ("speech", speech(), {"data": real(6, 2, 5), "label": of([1, 2], [3, 0])}),
    ):
        shapes, _, _ = symbol.infer_shape(**{key: value.shape for key, value in given.items()})
        drawn = {
            key: real(*shape, low=-0.4, high=0.4)
            for key, shape in zip(symbol.list_arguments(), shapes)  # noqa: B905 (Python 3.8)
        }
        yield name, symbol, {**drawn, **given}


ROIS = of([0, 0, 0, 30, 30], [0, 4, 8, 20, 34], [0, 12, 2, 14, 30])


def two_stage() -> Any:
    """Make a network that proposes regions and classifies them."""
    features = S.Convolution(S.var("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, name="c1")
    features = S.Activation(features, act_type="relu")
    scores = S.Convolution(features, kernel=(1, 1), num_filter=6, name="scores")
    scores = S.softmax(S.reshape(scores, shape=(0, 2, -1, 0)), axis=1)
    scores = S.reshape(scores, shape=(0, 6, 12, 12))
    offsets = S.Convolution(features, kernel=(1, 1), num_filter=12, name="offsets")
    regions = S.contrib.Proposal(
        scores, offsets, S.var("info"), scales=(2,), ratios=(0.5, 1, 2), feature_stride=4,
        rpn_pre_nms_top_n=60, rpn_post_nms_top_n=8, rpn_min_size=4,
    )  # fmt: skip
    pooled = S.ROIPooling(features, regions, pooled_size=(2, 2), spatial_scale=0.25)
    return S.Group([regions, S.softmax(S.FullyConnected(pooled, num_hidden=3, name="fc"))])


def position_sensitive() -> Any:
    """Make a network of a deformable convolution and position-sensitive regions."""
    image, rois = S.var("data"), S.var("rois")
    offset = S.Convolution(image, kernel=(3, 3), pad=(1, 1), num_filter=18, name="o")
    data = S.contrib.DeformableConvolution(
        image, offset, kernel=(3, 3), pad=(1, 1), num_filter=16, name="d"
    )
    fixed = S.contrib.PSROIPooling(
        data, rois, spatial_scale=0.25, output_dim=4, pooled_size=2, group_size=2
    )
    moves = S.reshape(S.FullyConnected(fixed, num_hidden=8, name="m"), shape=(-1, 2, 2, 2))
    moved = S.contrib.DeformablePSROIPooling(
        data, rois, moves, spatial_scale=0.25, output_dim=4, pooled_size=2,
        group_size=2, part_size=2, sample_per_part=2, trans_std=0.1,
    )  # fmt: skip
    return S.FullyConnected(fixed + moved, num_hidden=3, name="fc")


def single_shot() -> Any:
    """Make a network that detects at once."""
    data = S.Convolution(S.var("data"), kernel=(3, 3), stride=(2, 2), num_filter=4, name="c1")
    anchors = S.contrib.MultiBoxPrior(data, sizes=(0.3, 0.6), ratios=(1, 2))
    scores = S.Convolution(data, kernel=(1, 1), num_filter=9, name="scores")
    scores = S.reshape(S.transpose(scores, axes=(0, 2, 3, 1)), shape=(0, -1, 3))
    scores = S.softmax(S.transpose(scores, axes=(0, 2, 1)), axis=1)
    offsets = S.Convolution(data, kernel=(1, 1), num_filter=12, name="offsets")
    offsets = S.flatten(S.transpose(offsets, axes=(0, 2, 3, 1)))
    return S.contrib.MultiBoxDetection(scores, offsets, anchors, nms_threshold=0.4)


def flow() -> Any:
    """Make a network that correlates two images."""
    weight, bias = S.var("weight"), S.var("bias")
    sides = [
        S.Convolution(S.var(side), weight, bias, kernel=(3, 3), num_filter=4, name=side + "_c")
        for side in ("left", "right")
    ]
    matched = S.Correlation(*sides, kernel_size=1, max_displacement=2, pad_size=2)
    return S.Convolution(matched, kernel=(3, 3), num_filter=2, name="out")


def speech() -> Any:
    """Make a recurrent network with a loss over alignments."""
    hidden = S.RNN(S.var("data"), state_size=4, num_layers=1, mode="gru", name="gru")
    classes = S.FullyConnected(hidden, num_hidden=4, flatten=False, name="fc")
    return S.CTCLoss(classes, S.var("label"))
