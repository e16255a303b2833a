"""Sizes that ONNX's inference does not state, and ONNX Runtime allocates by."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper, parser

import passlib
from passlib.errors import GraphError

HEAD = '<ir_version: 8, opset_import: ["" : {}, "ai.onnx.ml": 3, "com.microsoft": 1]> g '
IMAGE = "(float[1, 2, 4, 4] x) => (float[A, B, C, D] y) "

CASES: dict[str, tuple[str, int, str]] = {
    "a window over channels": (
        IMAGE + "{ y = LRN<size = 2001>(x) }",
        (2 + 2000) * 4 * 4 * 4,
        "the window of node 0 (LRN) has the shape (2002, 4, 4)",
    ),
    "a window in a branch": (
        ("(float[1, 2, 4, 4] x, bool c) => (float[A, B, C, D] y) { y = If(c) <then_branch = t () "
        "=> (float[A, B, C, D] z) { z = LRN<size = 2001>(x) }, else_branch = e () => "
        "(float[A, B, C, D] w) { w = Relu(x) }> }"),
        (2 + 2000) * 4 * 4 * 4,
        "the window of node 0 (LRN) has the shape (2002, 4, 4)",
    ),
    "the shape of unpooling": (
        IMAGE + "<int64[1, 2, 4, 4] i = {" + ", ".join(map(str, range(32))) + "}, "
        "int64[4] s = {1, 2, 40, 50}> { y = MaxUnpool<kernel_shape = [2, 2]>(x, i, s) }",
        2 * 40 * 50 * 4,
        "value 'y' has the shape (1, 2, 40, 50)",
    ),
    "a computed shape of unpooling": (
        IMAGE + "<int64[1, 2, 4, 4] i = {" + ", ".join(map(str, range(32))) + "}, "
        "int64[4] s = {1, 1, 7, 8}, int64[4] k = {1, 2, 7, 8}> "
        "{ t = Mul(s, k) y = MaxUnpool<kernel_shape = [2, 2]>(x, i, t) }",
        2 * 49 * 64 * 4,
        "value 'y' has the shape (1, 2, 49, 64)",
    ),
    "joined features": (
        ("(float[3, 2] x) => (float[A, B] y) "
        "{ y = ai.onnx.ml.FeatureVectorizer<inputdimensions = [2000]>(x) }"),
        3 * 2000 * 4,
        "the result of node 0 (FeatureVectorizer) has the shape (3, 2000)",
    ),
    "padding": (
        ("(float[2, 2] x) => (float[A, B] y) <int64[4] p = {0, 8, 50, 30}> "
        "{ y = com.microsoft.Pad(x, p) }"),
        52 * 40 * 4,
        "value 'y' has the shape (52, 40)",
    ),
    "a range": (
        ("(float[1] x) => (float[A] y) <float a = {0}, float b = {3000}, float c = {1}> "
        "{ y = com.microsoft.Range(a, b, c) }"),
        3000 * 4,
        "value 'y' has the shape (3000)",
    ),
    "crops": (
        IMAGE + "<float[2, 4] r = {0, 0, 1, 1, 0, 0, 1, 1}, int32[2] b = {0, 0}, "
        "int32[2] s = {30, 40}> { y = com.microsoft.CropAndResize(x, r, b, s) }",
        2 * 2 * 30 * 40 * 4,
        "value 'y' has the shape (2, 2, 30, 40)",
    ),
    "a fused convolution": (
        ("(float[1, 1, 2, 2] x) => (float[A, B, C, D] y) <float[1, 1, 1, 1] w = {2}> "
        '{ y = com.microsoft.FusedConv<activation = "Relu", pads = [9, 19, 19, 29]>(x, w) }'),
        30 * 50 * 4,
        "value 'y' has the shape (1, 1, 30, 50)",
    ),
    "a transposed convolution": (
        ("(float[1, 1, 2, 2] x) => (float[A, B, C, D] y) <float[1, 1, 1, 1] w = {2}, "
        "int64[4] p = {0, 0, 0, 0}> "
        "{ y = com.microsoft.ConvTransposeWithDynamicPads<strides = [40, 50]>(x, w, p) }"),
        41 * 51 * 4,
        "value 'y' has the shape (1, 1, 41, 51)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("version", [8, 17])
@pytest.mark.parametrize("what", CASES)
def test_sizes(what: str, version: int) -> None:
    text, size, message = CASES[what]
    proto = parser.parse_model(HEAD.format(version) + text)
    model = passlib.load(proto)
    feeds = {}
    for value in proto.graph.input:
        kind = value.type.tensor_type
        sizes = [dim.dim_value for dim in kind.shape.dim]
        feeds[value.name] = np.ones(sizes, helper.tensor_dtype_to_np_dtype(kind.elem_type))
    with passlib.limits(tensor_bytes=size - 1), pytest.raises(GraphError) as caught:
        model.run(feeds)
    expected = f"{message}, which takes {size:,} bytes; the limit is {size - 1:,}"
    assert str(caught.value).startswith(expected)
    if version == 8 and "MaxUnpool" in text:
        return  # which came with operator set 9
    with passlib.limits(tensor_bytes=size):
        (made,) = model.run(feeds).values()
    if what not in ("a window over channels", "a window in a branch"):
        assert made.size * 4 == size
