"""Models that a rule without one of its conditions would change."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

import passlib
from random_graphs import bytes_of
from rewriting import parsed, results


def rules_of(family: str) -> passlib.Rules:
    """Return passlib's rules of a family, without a name that other tests may use for a pass."""
    path = str(files("passlib") / f"rules/{family}.rules")
    return passlib.Rules.load(path, name=f"refuted_{family}")


def check_operators_stay(family: str, rule: str, text: str) -> None:
    """Check that a rule does not change the operators of a model."""
    rules = rules_of(family)
    model = passlib.load(parsed(text))
    made = model.optimize_for(rules, only=[rule], target=rules[rule].target)
    before, after = ([node.op for node in each.symbol.nodes()] for each in (model, made))
    assert before == after


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
    rules = rules_of("quantization")
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
    rules = rules_of("normalization")
    made = passlib.load(parsed(text)).optimize_for(rules, only=["layerNormalization"])
    assert "LayerNormalization" not in {node.op for node in made.symbol.nodes()}


@pytest.mark.parametrize("name", KEPT)
def test_the_model_stays(name: str) -> None:
    family, rule, text, op = KEPT[name]
    rules = rules_of(family)
    made = passlib.load(parsed(text)).optimize_for(rules, only=[rule])
    (node,) = [node for node in made.symbol.nodes() if node.op == op]
    assert len(node.inputs) == 3


def _attention(opset: int, mask: str = "") -> str:
    """Return an attention of scores through infinity, whose scale would be 0."""
    return (
        f'<ir_version: 10, opset_import: ["" : {opset}]> '
        f"g (float[1, 3, 8] x, float[1, 2, 5, 4] k, {mask}float[1, 2, 5, 4] v) => "
        "(float[1, 3, 2, 4] y) <float d = {inf}, int64[4] heads = {0, 0, 2, 4}> "
        "{ i = Reshape(x, heads) q = Transpose <perm = [0, 2, 1, 3]> (i) "
        "t = Transpose <perm = [0, 1, 3, 2]> (k) a = MatMul(q, t) b = Div(a, d) "
        f"{'c = Add(b, mask) ' if mask else ''}p = Softmax <axis = -1> ({'c' if mask else 'b'}) "
        "o = MatMul(p, v) y = Transpose <perm = [0, 2, 1, 3]> (o) }"
    )


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
    "keys of a present of another batch than the queries": (
        "attention",
        "presentOfAttention",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[1, 2, 3, 4] q, float[2, 2, 3, 4] k, float[2, 2, n, 4] past) => "
            "(float[1, 2, 3, 4] y, float[b, 2, m, 4] p, float[b, 2, m, 4] r, "
            "float[2, 2, m, 4] c, float[2, 2, m, 4] d) "
            "{ y, p, r = Attention(q, k, k, , past, past) c = Concat <axis = 2> (past, k) "
            "d = Concat <axis = 2> (past, k) }"
        ),
    ),
    "a factor that is one of the results": (
        "microsoft",
        "sumsOfSkipLayerNormalization",
        (
            '<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]> '
            "g (float[3, 4] x, float[3, 4] skip) => (float[3, 4] y) <float[4] c = {1, 0, 0, 0}> "
            "{ a = Add(x, c) s = Add(a, skip) "
            'n = com.microsoft.SkipLayerNormalization(x, skip, s, "", c) y = Sub(n, s) }'
        ),
    ),
    "a summand that enlarges a normalization of fewer elements": (
        "normalization",
        "summandOfLayerNormalization",
        (
            "g (float[2, n, 1] x) => (float[2, n, 3] y) <float[3] s = {1, 2, 3}> "
            "{ m = LayerNormalization(x, s) y = Add(m, s) }"
        ),
    ),
    "a factor that enlarges a normalization of fewer elements": (
        "normalization",
        "factorOfLayerNormalization",
        (
            "g (float[2, n, 1] x) => (float[2, n, 3] y) <float[3] s = {1, 2, 3}> "
            "{ m = LayerNormalization(x, s) y = Mul(m, s) }"
        ),
    ),
    "no axes, which are all axes": (
        "movement",
        "reduceOfOne",
        (
            '<ir_version: 10, opset_import: ["" : 18]> '
            "g (float[m, n] x) => (float[p, q] y) <int64[0] a = {}> "
            "{ r = ReduceMax(x, a) y = Relu(r) }"
        ),
    ),
    "a difference through a deviation along no axes": (
        "normalization",
        "layerNormalization",
        (
            '<ir_version: 10, opset_import: ["" : 18]> '
            "g (float[2, 3] x) => (float[2, 3] y) <int64[0] a = {}, float e = {0.001}> "
            "{ m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) "
            "w = Add(v, e) r = Sqrt(w) y = Div(d, r) }"
        ),
    ),
    "a root of a mean along no axes": (
        "normalization",
        "rmsNormalization",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[2, 3] x) => (float[2, 3] y) "
            "<int64[0] a = {}, float e = {0.001}, float f = {2}> "
            "{ q = Mul(x, x) m = ReduceMean(q, a) w = Add(m, e) r = Sqrt(w) d = Div(x, r) "
            "y = Mul(d, f) }"
        ),
    ),
    "channels that are not those of the factors": (
        "decompositions",
        "partsOfInstanceNormalization",
        (
            "g (float[n, 3, 4] x) => (float[n, 3, 4] y) <float[2] s = {1, 2}, float[2] b = {1, 2}> "
            "{ y = InstanceNormalization(x, s, b) }"
        ),
    ),
    "channels that BatchNormalization has no factors for": (
        "decompositions",
        "partsOfBatchNormalization",
        (
            "g (float[2, 3] x) => (float[2, 3] y) <float[2] s = {1, 2}, float[2] v = {1, 2}> "
            "{ y = BatchNormalization(x, s, s, s, v) }"
        ),
    ),
    "an infinite factor, from which ONNX Runtime's kernel makes NaN": (
        "decompositions",
        "partsOfInstanceNormalization",
        (
            "g (float[n, 1, 4] x) => (float[n, 1, 4] y) <float[1] s = {-inf}, float[1] b = {1}> "
            "{ y = InstanceNormalization(x, s, b) }"
        ),
    ),
    "channels that do not make groups": (
        "decompositions",
        "partsOfGroupNormalization",
        (
            '<ir_version: 10, opset_import: ["" : 21]> '
            "g (float[n, 3, 4] x, float[3] s) => (float[n, 3, 4] y) "
            "{ y = GroupNormalization <num_groups = 2> (x, s, s) }"
        ),
    ),
    "factors of groups of an unknown number": (
        "decompositions",
        "partsOfGroupNormalization",
        (
            '<ir_version: 10, opset_import: ["" : 21]> '
            "g (float[n, 4, 3] x, float[c] s) => (float[n, 4, 3] y) "
            "{ y = GroupNormalization <num_groups = 2> (x, s, s) }"
        ),
    ),
    "Gelu of double, of which ONNX Runtime's kernel has factors of float": (
        "decompositions",
        "partsOfGeluByTanh",
        (
            '<ir_version: 10, opset_import: ["" : 20]> '
            'g (double[n] x) => (double[n] y) { y = Gelu <approximate = "tanh"> (x) }'
        ),
    ),
    "a scale of 0 of attention": ("attention", "attention", _attention(23)),
    "a scale of 0 of attentionWithMask": (
        "attention",
        "attentionWithMask",
        _attention(23, "float[3, 5] mask, "),
    ),
    "a scale of 0 of attentionWithRowOfMask": (
        "attention",
        "attentionWithRowOfMask",
        _attention(23, "float[1, 1, 1, 5] mask, "),
    ),
    "a scale of 0 of multiHeadAttention": ("microsoft", "multiHeadAttention", _attention(17)),
    "a scale of 0 of multiHeadAttentionWithMask": (
        "microsoft",
        "multiHeadAttentionWithMask",
        _attention(17, "float[1, 1, 3, 5] mask, "),
    ),
    "a scale of 0 of factorOfQueries": (
        "attention",
        "factorOfQueries",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => "
            "(float[1, 2, 3, 4] y) <float d = {inf}> "
            "{ f = Div(q, d) y = Attention <scale = 0.5> (f, k, v) }"
        ),
    ),
    "a scale of 0 of factorOfKeys": (
        "attention",
        "factorOfKeys",
        (
            '<ir_version: 10, opset_import: ["" : 23]> '
            "g (float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => "
            "(float[1, 2, 3, 4] y) <float d = {inf}> "
            "{ f = Div(k, d) y = Attention <scale = 0.5> (q, f, v) }"
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
    check_operators_stay(*STAYS[name])


NO_AXES = {
    "squaresInSum": "m = Mul(x, x) y = ReduceSum{}(m, a)",
    "lengthOfVector": "m = Mul(x, x) r = ReduceSum{}(m, a) y = Sqrt(r)",
    "absoluteValuesInSum": "m = Abs(x) y = ReduceSum{}(m, a)",
    "sumOfExp": "m = Exp(x) r = ReduceSum{}(m, a) y = Log(r)",
    "partsOfReduceL1": "y = ReduceL1{}(x, a)",
    "partsOfReduceL2": "y = ReduceL2{}(x, a)",
    "partsOfReduceSumSquare": "y = ReduceSumSquare{}(x, a)",
    "partsOfReduceLogSum": "y = ReduceLogSum{}(x, a)",
}


@pytest.mark.parametrize("rule", NO_AXES)
def test_no_axes_with_the_attribute_that_then_nothing_is_reduced_stay(rule: str) -> None:
    """The replacement lacks the attribute."""
    body = NO_AXES[rule].format(" <noop_with_empty_axes = 1> ")
    family = "decompositions" if rule.startswith("parts") else "normalization"
    check_operators_stay(
        family,
        rule,
        '<ir_version: 10, opset_import: ["" : 18]> '
        f"g (float[m, n] x) => (float[p, q] y) <int64[0] a = {{}}> {{ {body} }}",
    )


FAILING = {
    "a ratio above 1": (
        "elementwise",
        "dropout",
        (
            "g (float[2, 3] x) => (float[2, 3] y) <float ratio = {6}, bool t = {0}> "
            "{ d = Dropout(x, ratio, t) y = Relu(d) }"
        ),
    ),
    "axes of the second slice that are a number": (
        "movement",
        "splitOfSlices",
        (
            "g (float[2, 3] x) => (float[2, 2] p, float[2, 1] q) <int64[1] n = {0}, "
            "int64[1] m = {2}, int64[1] e = {9}, int64[1] a = {1}, int64 b = {1}> "
            "{ p = Slice(x, n, m, a) q = Slice(x, m, e, b) }"
        ),
    ),
    "axes of one half that are a number": (
        "movement",
        "concatOfHalves",
        (
            "g (float[2, 3] x) => (float[2, 3] y) <int64[1] n = {0}, "
            "int64[1] m = {2}, int64[1] e = {9}, int64[1] a = {1}, int64 b = {1}> "
            "{ p = Slice(x, n, m, a) q = Slice(x, m, e, b) c = Concat <axis = 1> (p, q) "
            "y = Relu(c) }"
        ),
    ),
    "a shape that is a number": (
        "movement",
        "movementOfMovement",
        (
            "g (float[2, 3] x) => (float[m, n] y) <int64 s = {-1}, int64[1] a = {0}> "
            "{ r = Reshape(x, s) y = Unsqueeze(r, a) }"
        ),
    ),
    "pads of one axis of two": (
        "shapes",
        "padOfNothing",
        (
            "g (float[2, 3] x) => (float[m, n] y) <int64[2] p_of = {0, 0}> "
            "{ p = Identity(p_of) d = Pad(x, p) y = Relu(d) }"
        ),
    ),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_rule_states_that_the_pattern_can_fail_where_the_replacement_does_not(name: str) -> None:
    family, rule, text = FAILING[name]
    rules = rules_of(family)
    data = parsed(text)
    feeds = {"x": np.ones((2, 3), np.float32)}
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        results(data, feeds)
    results(bytes_of(passlib.load(data).optimize_for(rules, only=[rule])), feeds)
    assert rules[rule].drops_check


def test_the_shape_of_a_text_that_is_no_number() -> None:
    rules = rules_of("casts")
    data = parsed("g (string[n] x) => (int64[1] y) { c = Cast <to = 1> (x) y = Shape(c) }")
    feeds = {"x": np.array(["a"], object)}
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        results(data, feeds)
    (found,) = results(bytes_of(passlib.load(data).optimize_for(rules)), feeds)
    assert found.tolist() == [1]
    assert rules["shapeOfCast"].drops_check
