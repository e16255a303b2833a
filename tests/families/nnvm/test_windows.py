"""Convolution, pooling and resizing of NNVM, measured against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nnvm_cases import (
    CONV,
    Array,
    Attrs,
    B,
    W,
    X,
    check,
    conv2d,
    real,
    windows,
)

pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    ("attrs", "options"),
    [
        ({}, {}),
        ({"padding": "(1, 2)"}, {"pads": (1, 2, 1, 2)}),
        ({"padding": "1"}, {"pads": (1, 1, 1, 1)}),
        ({"padding": "(0, 1, 2, 3)"}, {"pads": (0, 1, 2, 3)}),
        ({"strides": "(2, 3)"}, {"strides": (2, 3)}),
        ({"dilation": "(2, 1)", "strides": "2"}, {"dilation": (2, 1), "strides": (2, 2)}),
    ],
)
def test_conv2d(attrs: Attrs, options: dict[str, Any], tmp_path: Path) -> None:
    expected = conv2d(X, W, **options)
    bias = expected + B.reshape(1, -1, 1, 1)
    check("conv2d", {**CONV, **attrs}, [X, W, B], bias, tmp_path)
    check("conv2d", {**CONV, **attrs, "use_bias": "0"}, [X, W], expected, tmp_path)


def test_conv2d_in_groups_and_other_orders_of_axes(tmp_path: Path) -> None:
    weight = real(6, 2, 3, 2)
    expected = conv2d(X, weight, groups=2)
    attrs = {**CONV, "groups": "2", "use_bias": "False"}
    check("conv2d", attrs, [X, weight], expected, tmp_path)
    last = X.transpose(0, 2, 3, 1).copy()
    kernel = weight.transpose(2, 3, 1, 0).copy()
    orders = {"layout": "NHWC", "kernel_layout": "HWIO"}
    check("conv2d", {**attrs, **orders}, [last, kernel], expected.transpose(0, 2, 3, 1), tmp_path)
    orders["out_layout"] = "HWCN"
    check("conv2d", {**attrs, **orders}, [last, kernel], expected.transpose(2, 3, 1, 0), tmp_path)


@pytest.mark.parametrize(
    ("strides", "padding", "extra"), [((1, 1), 0, 0), ((2, 2), 1, 1), ((3, 3), 0, 2)]
)
def test_conv2d_transpose_is_the_gradient(
    strides: tuple[int, int], padding: int, extra: int, tmp_path: Path
) -> None:
    data, weight = real(1, 3, 4, 4), real(3, 2, 3, 3)
    size = strides[0] * 3 + 3 - 2 * padding + extra
    expected = np.zeros((1, 2, size, size), np.float32)
    spread = np.zeros((1, 2, size + 2 * padding, size + 2 * padding), np.float32)
    for i in range(4):
        for j in range(4):
            top, left = i * strides[0], j * strides[1]
            spread[:, :, top : top + 3, left : left + 3] += np.einsum(
                "nc,cohw->nohw", data[:, :, i, j], weight
            )
    expected[:] = spread[:, :, padding : padding + size, padding : padding + size]
    attrs = {
        "channels": "2",
        "kernel_size": "(3, 3)",
        "strides": str(strides),
        "padding": f"({padding}, {padding})",
        "output_padding": f"({extra}, {extra})",
        "use_bias": "False",
    }
    check("conv2d_transpose", attrs, [data, weight], expected, tmp_path)


def pooled(
    data: Array,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    *,
    ceil: bool,
    kind: str,
) -> Array:
    top, left, bottom, right = pads
    sizes = data.shape[2:]
    totals = (sizes[0] + top + bottom, sizes[1] + left + right)
    over = [
        -(total - k) % s if ceil else 0 for total, k, s in zip(totals, kernel, strides, strict=True)
    ]
    widths = ((0, 0), (0, 0), (top, bottom + over[0]), (left, right + over[1]))
    outside = np.pad(data, widths, constant_values=-np.inf if kind == "max" else 0)
    seen = windows(outside, kernel, strides, (1, 1))
    if kind == "max":
        return seen.max((4, 5))
    if kind == "include":
        return seen.mean((4, 5))
    inside = windows(np.pad(np.ones_like(data), widths), kernel, strides, (1, 1)).sum((4, 5))
    return seen.sum((4, 5)) / np.maximum(inside, 1)


@pytest.mark.parametrize("kind", ["max", "exclude", "include"])
@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize(
    ("kernel", "strides", "pads"),
    [
        ((2, 2), (1, 1), (0, 0, 0, 0)),
        ((3, 2), (2, 3), (1, 0, 1, 0)),
        ((3, 3), (2, 2), (0, 1, 2, 1)),
        ((2, 2), (4, 4), (1, 1, 1, 1)),
    ],
)
def test_pooling(
    kind: str,
    ceil: bool,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    tmp_path: Path,
) -> None:
    expected = pooled(X, kernel, strides, pads, ceil=ceil, kind=kind)
    if kind == "max" and np.isinf(expected).any():
        expected = np.where(np.isinf(expected), np.finfo(np.float32).min, expected)
    attrs = {
        "pool_size": str(kernel),
        "strides": str(strides),
        "padding": str(pads),
        "ceil_mode": str(ceil),
    }
    if kind == "include":
        attrs["count_include_pad"] = "True"
    op = "max_pool2d" if kind == "max" else "avg_pool2d"
    check(op, attrs, [X], expected.astype(np.float32), tmp_path)
    last = X.transpose(0, 2, 3, 1).copy()
    moved = expected.astype(np.float32).transpose(0, 2, 3, 1)
    check(op, {**attrs, "layout": "NHWC"}, [last], moved, tmp_path)


@pytest.mark.parametrize("aligned", [True, False])
def test_bilinear_resize_draws_straight_lines(aligned: bool, tmp_path: Path) -> None:
    sizes, wanted = X.shape[2:], (9, 11)
    result = X.astype(np.float64)
    for axis, (size, want) in enumerate(zip(sizes, wanted, strict=True), start=2):
        ratio = (size - 1) / (want - 1) if aligned else size / want
        places = np.minimum(np.arange(want) * ratio, size - 1)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, size - 1)
        shape = [1] * 4
        shape[axis] = want
        part = (places - low).reshape(shape)
        result = result.take(low, axis) * (1 - part) + result.take(high, axis) * part
    attrs = {"size": "(9, 11)", "align_corners": str(aligned)}
    check("resize", attrs, [X], result.astype(np.float32), tmp_path)
