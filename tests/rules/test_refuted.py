"""Models that a rule without one of its conditions would change."""

from __future__ import annotations

from importlib.resources import files

import pytest

import passlib
from rewriting import parsed

KEPT = {
    "a pad above the least number of double": (
        "layers",
        "padIntoMaxPool",
        (
            "g (double[1, 1, 4, 4] x) => (double[1, 1, 6, 6] y) "
            "<int64[8] p = {0, 0, 2, 2, 0, 0, 2, 2}, double v = {-3.1e38}> "
            "{ q = Pad(x, p, v) y = MaxPool <kernel_shape = [3, 3]> (q) }"
        ),
        "Pad",
    ),
    "a third matrix that makes Gemm fail": (
        "layers",
        "gemmWithZero",
        (
            "g (float[2, 3] a, float[3, 5] b) => (float[2, 5] y) <float[4] c = {0, 0, 0, 0}> "
            "{ y = Gemm(a, b, c) }"
        ),
        "Gemm",
    ),
}


def test_a_scale_whose_products_are_infinite_stays() -> None:
    text = (
        "g (uint8[2] x) => (uint8[2] y) <float s = {1e38}, uint8 z = {0}> "
        "{ d = DequantizeLinear(x, s, z) y = QuantizeLinear(d, s, z) }"
    )
    rules = passlib.Rules.load(str(files("passlib") / "rules/quantization.rules"))
    made = passlib.load(parsed(text)).optimize_for(rules, only=["quantizeOfDequantize"])
    assert "QuantizeLinear" in {node.op for node in made.symbol.nodes()}


def test_an_epsilon_of_more_axes_than_the_value_stays() -> None:
    """LayerNormalization would have another rank."""
    text = (
        "g (float[4] x) => (float[1, 4] y) <float two = {2}, float[1, 1] e = {0.001}, "
        "float[4] s = {1, 2, 3, 4}, float[4] b = {1, 2, 3, 4}> "
        "{ m = ReduceMean <axes = [-1], keepdims = 1> (x) d = Sub(x, m) p = Pow(d, two) "
        "v = ReduceMean <axes = [-1], keepdims = 1> (p) w = Add(v, e) r = Sqrt(w) "
        "q = Div(d, r) t = Mul(q, s) y = Add(t, b) }"
    )
    rules = passlib.Rules.load(str(files("passlib") / "rules/normalization.rules"))
    made = passlib.load(parsed(text)).optimize_for(rules, only=["layerNormalization"])
    assert "LayerNormalization" not in {node.op for node in made.symbol.nodes()}


@pytest.mark.parametrize("name", KEPT)
def test_the_model_stays(name: str) -> None:
    family, rule, text, op = KEPT[name]
    rules = passlib.Rules.load(str(files("passlib") / f"rules/{family}.rules"))
    made = passlib.load(parsed(text)).optimize_for(rules, only=[rule])
    (node,) = [node for node in made.symbol.nodes() if node.op == op]
    assert len(node.inputs) == 3


STAYS = {
    # Squeeze along an empty list of axes removes none in ONNX, and all of size 1 in ONNX Runtime.
    "a second Squeeze along an empty list": (
        "movement",
        "squeezeOfSqueeze",
        (
            "g (float[1, 1, n] x) => (float[] y) <int64[1] a = {0}, int64[0] b = {}> "
            "{ s = Squeeze(x, a) y = Squeeze(s, b) }"
        ),
    ),
    "Unsqueeze and Squeeze along empty lists": (
        "movement",
        "squeezeOfUnsqueeze",
        (
            "g (float[1, n] x) => (float[] y) <int64[0] b = {}> "
            "{ u = Unsqueeze(x, b) y = Squeeze(u, b) }"
        ),
    ),
    "a whole number that has no absolute value": (
        "elementwise",
        "reluOfPositive",
        "g (int8[2] x) => (int8[2] y) { a = Abs(x) y = Relu(a) }",
    ),
    "a sum of whole numbers that wraps around": (
        "elementwise",
        "absOfPositive",
        "g (int32[3] x) => (int32[1] y) { a = ReduceL1(x) y = Abs(a) }",
    ),
    "a reduction without axes that does nothing": (
        "elementwise",
        "absOfPositive",
        (
            "g (float[3] x) => (float[3] y) "
            "{ a = ReduceL1 <noop_with_empty_axes = 1> (x) y = Abs(a) }"
        ),
    ),
    "a text that has the digits of its type": (
        "casts",
        "castOfCast",
        "g (float[2] x) => (string[2] y) { d = Cast <to = 11> (x) y = Cast <to = 8> (d) }",
    ),
    "a least number of -0.0": (
        "elementwise",
        "clipOfClip",
        (
            "g (float[2] x) => (float[2] y) "
            "<float a = {0}, float b = {0}, float c = {-0.0}, float d = {1}> "
            "{ m = Clip(x, a, b) y = Clip(m, c, d) }"
        ),
    ),
    "a greatest number of -0.0": (
        "elementwise",
        "reluOfClip",
        (
            "g (float[2] x) => (float[2] y) <float low = {0}, float high = {-0.0}> "
            "{ m = Clip(x, low, high) y = Relu(m) }"
        ),
    ),
    "a scale of more axes than the scores": (
        "attention",
        "attention",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => "
            "(float[1, 1, 2, 3, 4] y) <float[1, 1, 1, 1, 1] d = {2}> "
            "{ t = Transpose <perm = [0, 1, 3, 2]> (k) s = MatMul(q, t) r = Div(s, d) "
            "p = Softmax <axis = -1> (r) y = MatMul(p, v) }"
        ),
    ),
    "keys whose elements are repeated, not their heads": (
        "attention",
        "attentionOfRepeatedHeads",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[1, 6, 3, 1] q, float[1, 2, 5, 1] k, float[1, 2, 5, 1] v) => "
            "(float[1, 6, 3, 1] y) "
            "<int64[1] a = {2}, int64[5] e = {1, 2, 1, 5, 3}, int64[4] s = {1, 6, 5, 1}> "
            "{ i = Unsqueeze(k, a) c = Expand(i, e) m = Reshape(c, s) "
            "j = Unsqueeze(v, a) d = Expand(j, e) n = Reshape(d, s) "
            "y = Attention(q, m, n) }"
        ),
    ),
    "heads of no rows that are no part of them": (
        "attention",
        "rotaryEmbeddingOfRows",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[0, 3, 40] x, float[0, 3, 3] c, float[0, 3, 3] z) => (float[0, 5, 3, 6] y) "
            "<int64[4] s = {0, 3, 5, 6}> "
            "{ r = Reshape(x, s) t = Transpose <perm = [0, 2, 1, 3]> (r) "
            "y = RotaryEmbedding(t, c, z) }"
        ),
    ),
    "heads of no rows of Attention that are no part of them": (
        "attention",
        "attentionOfHeads",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[0, 3, 8] x, float[0, 5, 8] u, float[0, 5, 8] w) => (float[0, 3, 2, 7] y) "
            "<int64[4] s = {0, 3, 2, 4}, int64[4] t = {0, 5, 2, 4}, int64[4] r = {0, 5, 2, 7}> "
            "{ i = Reshape(x, s) a = Transpose <perm = [0, 2, 1, 3]> (i) "
            "j = Reshape(u, t) b = Transpose <perm = [0, 2, 1, 3]> (j) "
            "l = Reshape(w, r) c = Transpose <perm = [0, 2, 1, 3]> (l) "
            "d = Attention(a, b, c) y = Transpose <perm = [0, 2, 1, 3]> (d) }"
        ),
    ),
    "heads of a Gemm of no rows that its columns do not make": (
        "layers",
        "headsOfGemm",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[0, 3, 4] x, float[6] b) => (float[0, 3, 5, 2] y) "
            "<int64[2] s = {0, 4}, int64[4] t = {0, 3, 5, 2}, float[4, 6] w = {"
            + ", ".join("1" * 24)
            + "}> { r = Reshape <allowzero = 1> (x, s) m = Gemm(r, w, b) "
            "y = Reshape <allowzero = 1> (m, t) }"
        ),
    ),
    "values of a stated type that lose digits": (
        "quantization",
        "quantizeOfDequantize",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (uint16[2] x) => (uint16[2] y) <float s = {0.5}, uint16 z = {0}> "
            "{ d = DequantizeLinear <output_dtype = 10> (x, s, z) y = QuantizeLinear(d, s, z) }"
        ),
    ),
}


@pytest.mark.parametrize("name", STAYS)
def test_the_operators_stay(name: str) -> None:
    family, rule, text = STAYS[name]
    rules = passlib.Rules.load(str(files("passlib") / f"rules/{family}.rules"))
    model = passlib.load(parsed(text))
    made = model.optimize_for(rules, only=[rule])
    before, after = ([node.op for node in each.symbol.nodes()] for each in (model, made))
    assert before == after
