"""Ask a real MXNet 1.9.1 for the results of the operators of detectors, and freeze them.

Run with a Python that has ``mxnet==1.9.1`` (and so ``numpy<1.24``)::

    python tests/interop/support/cases_detection.py tests/data/mxnet

writes ``detection_cases.jsonl.gz`` and ``detection_cases.npz``, in the form that cases_tensor.py
describes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

import frozen_cases
from cases_tensor_spec import Case, case, of, real


def cases() -> Iterator[Case]:
    """Yield every case."""
    yield from deformable()
    yield from sensitive()
    yield from rotated()
    yield from correlation()
    yield from proposals()


def deformable() -> Iterator[Case]:
    name = "_contrib_DeformableConvolution"
    windows: tuple[dict[str, Any], ...] = (
        {"kernel": (3, 3), "pad": (1, 1)},
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
        {"kernel": (1, 1)},
        {"kernel": (3, 2), "pad": (1, 0)},
        {"kernel": (3, 3), "pad": (2, 2), "dilate": (2, 2)},
        {"kernel": (3, 3), "pad": (1, 1), "num_deformable_group": 2},
        {"kernel": (3, 3), "pad": (1, 1), "num_group": 2},
    )
    for window in windows:
        kernel, pad = window["kernel"], window.get("pad", (0, 0))
        stride, dilate = window.get("stride", (1, 1)), window.get("dilate", (1, 1))
        sizes = [
            (size + 2 * pad[i] - dilate[i] * (kernel[i] - 1) - 1) // stride[i] + 1
            for i, size in enumerate((6, 5))
        ]
        offset = real(2, 2 * window.get("num_deformable_group", 1) * kernel[0] * kernel[1], *sizes)
        weight = real(4, 4 // window.get("num_group", 1), *kernel, low=-1, high=1)
        data = real(2, 4, 6, 5)
        yield case(name, data, offset, weight, real(4), num_filter=4, **window)
        yield case(name, data, offset, weight, num_filter=4, no_bias=True, **window)


def sensitive() -> Iterator[Case]:
    rois = of(
        [0, 0, 0, 7, 7],
        [1, 1, 2, 5, 6],
        [0, 2.4, 2.6, 6.5, 3.5],
        [1, 3, 3, 3, 3],
        [0, 5, 5, 12, 12],
        [1, 9, 9, 12, 12],
    )
    name = "_contrib_PSROIPooling"
    for group, size, scale in ((2, 2, 1.0), (2, 4, 1.0), (3, 3, 0.5), (1, 2, 1.0), (2, 3, 0.7)):
        data = real(2, 3 * group**2, 8, 9)
        yield case(
            name, data, rois, spatial_scale=scale, output_dim=3, pooled_size=size,
            group_size=group,
        )  # fmt: skip
    data = real(2, 8, 6, 6)
    yield case(name, data, rois, spatial_scale=1.0, output_dim=2, pooled_size=2)
    yield case(name, data, rois[:1], spatial_scale=0.25, output_dim=2, pooled_size=2)
    yield case(name, data[:1], rois[[0, 4]], spatial_scale=0.9, output_dim=2, pooled_size=2)
    name = "_contrib_DeformablePSROIPooling"
    for group, size, part, samples in ((2, 2, 2, 2), (2, 4, 2, 1), (3, 3, 0, 3), (1, 2, 1, 4)):
        data = real(2, 4 * group**2, 8, 9)
        shape = {
            "spatial_scale": 0.8, "output_dim": 4, "pooled_size": size, "group_size": group,
            "part_size": part, "sample_per_part": samples,
        }  # fmt: skip
        yield case(name, data, rois, no_trans=True, **shape)
        for classes, deviation in ((1, 0.1), (2, 0.3)):
            trans = real(6, 2 * classes, part or size, part or size)
            yield case(name, data, rois, trans, trans_std=deviation, **shape)


def rotated() -> Iterator[Case]:
    rois = of(
        [0, 3, 3, 4, 2, 30],
        [1, 4, 4, 3, 5, -45],
        [0, 2.4, 2.6, 6.5, 3.5, 0],
        [1, 7, 1, 0.5, 0.25, 90],
        [0, 9, 9, 4, 4, 170],
    )
    data = real(2, 3, 8, 7)
    for size in ((2, 2), (3, 1), (1, 4), (7, 7)):
        for scale, samples in ((1.0, 2), (0.5, 1), (0.8, 3)):
            yield case(
                "_contrib_RROIAlign", data, rois, pooled_size=size, spatial_scale=scale,
                sampling_ratio=samples,
            )  # fmt: skip
        for dtype, scale in (("float32", 0.6), ("float32", 1.0), ("float64", 1.0)):
            pair = data.astype(dtype), rois.astype(dtype)
            yield case("_contrib_RROIAlign", *pair, pooled_size=size, spatial_scale=scale)


def correlation() -> Iterator[Case]:
    settings = (
        {"kernel_size": 1, "max_displacement": 2, "pad_size": 2},
        {"kernel_size": 3, "max_displacement": 2, "pad_size": 3},
        {"kernel_size": 1, "max_displacement": 4, "stride2": 2, "pad_size": 4},
        {"kernel_size": 3, "max_displacement": 1, "stride1": 2, "pad_size": 2},
        {"kernel_size": 1, "max_displacement": 0},
        {"kernel_size": 3, "max_displacement": 3, "stride1": 2, "stride2": 2, "pad_size": 4},
    )
    for how in settings:
        for multiplied in (True, False):
            for shape in ((2, 3, 8, 9), (1, 1, 7, 7)):
                pair = real(*shape), real(*shape, low=-1)
                yield case("Correlation", *pair, is_multiply=multiplied, **how)


def proposals() -> Iterator[Case]:
    anchors = {"scales": (2, 4), "ratios": (0.5, 1, 2), "feature_stride": 16}
    count = {"rpn_pre_nms_top_n": 40, "rpn_post_nms_top_n": 9, "rpn_min_size": 4}
    several: tuple[dict[str, Any], ...] = (
        {**anchors, **count},
        {**anchors, **count, "threshold": 0.3},
        {**anchors, **count, "rpn_min_size": 40},
        {**anchors, **count, "iou_loss": True},
        {**anchors, **count, "rpn_pre_nms_top_n": 6000, "rpn_post_nms_top_n": 60},
        {"scales": (3,), "ratios": (1,), "feature_stride": 8, **count, "rpn_pre_nms_top_n": 8},
    )
    state = np.random.RandomState(5)
    for how in several:
        kinds = len(how["scales"]) * len(how["ratios"])
        scores = (state.permutation(2 * 2 * kinds * 12) + 1) / (4 * kinds * 12 + 2)
        scores = scores.reshape(2, 2 * kinds, 3, 4).astype("float32")
        offsets = real(2, 4 * kinds, 3, 4, low=-0.4, high=0.4)
        size = how["feature_stride"]
        images = of([3 * size, 4 * size, 1], [2.5 * size, 3.2 * size, 1.5])
        for shown in (True, False):
            yield case("_contrib_MultiProposal", scores, offsets, images, output_score=shown, **how)
            yield case(
                "_contrib_Proposal", scores[1:], offsets[1:], images[1:], output_score=shown, **how
            )


if __name__ == "__main__":
    frozen_cases.main(
        __doc__, "detection_cases", (sys.modules[__name__],), default=5e-5, narrow=max
    )
