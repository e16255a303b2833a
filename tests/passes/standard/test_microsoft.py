"""fuseLayers and fuseTransposes with operators of com.microsoft, for ONNX Runtime."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import passlib as pl
import transformers
from passlib.model.edits import content_of
from transformers import operators, results

OPSETS = (17, 20, 23)
# Operators of two blocks with these operator sets.
FUSED = {
    "bert": (60, 60, 60),
    "cached": (47, 47, 47),
    "gpt": (28, 28, 28),
    "llama": (119, 119, 39),
    "vit": (38, 38, 38),
    "whisper": (82, 82, 80),
}


@cache
def blocks(name: str, opset: int) -> tuple[bytes, bytes]:
    """Return a model of two blocks, and what simplify makes of it for ONNX Runtime."""
    before = transformers.BLOCKS[name](opset)
    after = content_of(pl.load(before).simplify(target="onnxruntime"))
    return before, after


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", FUSED)
def test_operators_of_two_blocks(name: str, opset: int) -> None:
    after = blocks(name, opset)[1]
    assert operators(after).total() == FUSED[name][OPSETS.index(opset)]
    imports = {each.domain: each.version for each in onnx.load_from_string(after).opset_import}
    assert imports == {"": opset, "com.microsoft": 1}


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", FUSED)
def test_numbers_and_open_sizes_stay(name: str, opset: int) -> None:
    transformers.assert_equal(name, *blocks(name, opset), ((1, 6), (8, 5), (3, 7), (2, 1)))


@pytest.mark.parametrize("name", FUSED)
def test_a_second_time_changes_nothing(name: str) -> None:
    after = blocks(name, 17)[1]
    again = content_of(pl.load(after).simplify(target="onnxruntime"))
    assert operators(again) == operators(after)


@pytest.mark.parametrize("mask", ["", ", , , mask"])
def test_keys_and_values_of_the_past(mask: str) -> None:
    text = f"""(float[b, n, 8] x, float[b, n, 8] u, float[b, n, 8] w, float[b, 2, p, 4] past,
        float[b, 2, p, 4] gone, float[1, 1, n, m] mask)
        => (float[b, n, 8] y, float[b, 2, m, 4] all, float[b, 2, m, 4] sum)
        <int64[4] heads = {{0, -1, 2, 4}}> {{
        i = Reshape(u, heads) j = Reshape(w, heads)
        k = Transpose<perm = [0, 2, 1, 3]>(i) v = Transpose<perm = [0, 2, 1, 3]>(j)
        all = Concat<axis = 2>(past, k) sum = Concat<axis = -2>(gone, v)
        y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.5>(x, all, sum{mask}) }}"""
    model = parser.parse_model(HEAD + text)
    model.opset_import.add(domain="com.microsoft", version=1)
    before = model.SerializeToString()
    after = content_of(pl.load(before).simplify(target="onnxruntime"))
    assert list(operators(after)) == ["MultiHeadAttention"]
    random = np.random.default_rng(0)
    for b, n, p in ((1, 1, 3), (2, 3, 1), (2, 2, 4)):
        shapes = dict.fromkeys("xuw", (b, n, 8)) | dict.fromkeys(("past", "gone"), (b, 2, p, 4))
        shapes["mask"] = (1, 1, n, n + p)
        feeds: dict[str, object] = {
            name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()
        }
        for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_sizes_of_keys_and_values_with_those_of_the_past() -> None:
    text = """(float[2, 3, 8] x, float[2, 2, p, 4] past) => (y, z) {
        y, all, sum = com.microsoft.MultiHeadAttention<num_heads = 2>(x, x, x, , , , past, past)
        z = Relu(sum) }"""
    model = parser.parse_model(HEAD + text)
    model.opset_import.add(domain="com.microsoft", version=1)
    rules = pl.Rules(
        'rule sized "Sizes are known."\n  z = Relu(a)\n  where rank(a) = 4, dim(a, 2) > 2\n'
        "  => z = Neg(a)\n  exact\n  enables"
    )
    made = pl.load(model).optimize_for(rules)
    assert [node.op for node in made.symbol.nodes()][-1] == "Neg"


@pytest.mark.parametrize("low", [-1e4, np.finfo(np.float32).min, -np.inf])
def test_values_that_a_mask_hides(low: float) -> None:
    """Masks of whole rows keep the results, too, unless these are no numbers."""
    text = """(float[b, n, 8] x, float[b, 2, m, 4] k, float[b, 2, m, 4] v, float[b, 1, n, m] mask)
        => (float[b, n, 8] y)
        <int64[4] heads = {0, -1, 2, 4}, int64[3] rows = {0, -1, 8}, float two = {2}> {
        r = Reshape(x, heads) q = Transpose<perm = [0, 2, 1, 3]>(r)
        t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) d = Div(s, two) a = Add(d, mask)
        p = Softmax(a) o = MatMul(p, v) u = Transpose<perm = [0, 2, 1, 3]>(o)
        y = Reshape(u, rows) }"""
    before = parser.parse_model(HEAD + text).SerializeToString()
    after = content_of(pl.load(before).simplify(target="onnxruntime"))
    assert list(operators(after)) == ["MultiHeadAttention"]
    random = np.random.default_rng(0)
    feeds: dict[str, object] = {
        "x": random.standard_normal((3, 5, 8)).astype(np.float32),
        "k": random.standard_normal((3, 2, 7, 4)).astype(np.float32),
        "v": random.standard_normal((3, 2, 7, 4)).astype(np.float32),
    }
    mask = np.zeros((3, 1, 5, 7), np.float32)
    mask[..., 2:] = low
    mask[1, :, 2] = low if np.isfinite(low) else 0
    feeds["mask"] = mask
    for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


HEAD = '<ir_version: 9, opset_import: ["" : 17]> g '
BOOK = Path(pl.__file__).parent / "rules" / "microsoft.rules"
LIKE = {
    "a bias along another axis": (
        "biasGelu",
        (
            "(float[2, 3, 3] x, float[3, 1] b) => (float[2, 3, 3] y) {"
            " s = Add(x, b) y = com.microsoft.Gelu(s) }"
        ),
    ),
    "a bias that enlarges": (
        "biasGelu",
        (
            "(float[2, 1] x, float[3] b) => (float[2, 3] y) {"
            " s = Add(x, b) y = com.microsoft.Gelu(s) }"
        ),
    ),
    "double": (
        "quickGelu",
        "(double[2, 3] x) => (double[2, 3] y) { s = Sigmoid(x) y = Mul(x, s) }",
    ),
    "another value": (
        "quickGelu",
        "(float[2, 3] x, float[2, 3] z) => (float[2, 3] y) { s = Sigmoid(z) y = Mul(x, s) }",
    ),
    "a factor for each column": (
        "productTimesNumber",
        (
            "(float[2, 3] x, float[3, 2] z) => (float[2, 2] y) <float[2] f = {1, 2}> {"
            " p = MatMul(x, z) y = Mul(p, f) }"
        ),
    ),
    "a vector": (
        "productTimesNumber",
        (
            "(float[2, 3] x, float[3] z) => (float[2] y) <float f = {2}> {"
            " p = MatMul(x, z) y = Mul(p, f) }"
        ),
    ),
    "a number of more axes": (
        "productTimesNumber",
        (
            "(float[2, 3] x, float[3, 2] z) => (float[1, 2, 2] y) <float[1, 1, 1] f = {2}> {"
            " p = MatMul(x, z) y = Mul(p, f) }"
        ),
    ),
    "another order of axes": (
        "productOfTransposed",
        (
            "(float[2, 2, 3] x, float[2, 3, 2] z) => (float[2, 2, 2] y) {"
            " t = Transpose<perm = [2, 1, 0]>(z) y = MatMul(x, t) }"
        ),
    ),
    "a product that is an output": (
        "productTimesNumber",
        (
            "(float[2, 3] x, float[3, 2] z) => (float[2, 2] p, float[2, 2] y) <float f = {2}> {"
            " p = MatMul(x, z) y = Mul(p, f) }"
        ),
    ),
    "a sum that broadcasts": (
        "skipLayerNormalization",
        (
            "(float[2, 3, 4] x, float[1, 3, 4] z) => (float[2, 3, 4] y)"
            " <float[4] g = {1, 2, 3, 4}> { s = Add(x, z) y = LayerNormalization(s, g) }"
        ),
    ),
    "normalization of two axes": (
        "skipLayerNormalization",
        (
            "(float[2, 2, 2] x, float[2, 2, 2] z) => (float[2, 2, 2] y)"
            " <float[2, 2] g = {1, 2, 3, 4}> {"
            " s = Add(x, z) y = LayerNormalization<axis = 1>(s, g) }"
        ),
    ),
    "a sum of RMSNormalization that broadcasts": (
        "skipSimplifiedLayerNormalization",
        (
            "(float[2, 3, 4] x, float[1, 3, 4] z) => (float[2, 3, 4] y)"
            " <float[4] g = {1, 2, 3, 4}> { s = Add(x, z) y = RMSNormalization(s, g) }"
        ),
    ),
    "another sum that broadcasts": (
        "sumOfSkipLayerNormalization",
        (
            "(float[2, 3, 4] x, float[3, 4] z) => (float[2, 3, 4] y, float[2, 3, 4] s)"
            " <float[4] g = {1, 2, 3, 4}> {"
            " y = com.microsoft.SkipLayerNormalization(x, z, g) s = Add(x, z) }"
        ),
    ),
    "another sum of RMSNormalization that broadcasts": (
        "sumOfSkipSimplifiedLayerNormalization",
        (
            "(float[2, 3, 4] x, float[3, 4] z) => (float[2, 3, 4] y, float[2, 3, 4] s)"
            " <float[4] g = {1, 2, 3, 4}> {"
            " y = com.microsoft.SkipSimplifiedLayerNormalization(x, z, g) s = Add(x, z) }"
        ),
    ),
    "past keys along another axis": (
        "multiHeadAttentionWithPast",
        (
            "(float[2, 3, 8] x, float[2, 3, 8] u, float[2, 2, 3, 3] p) => (float[2, 3, 8] y)"
            " <int64[4] heads = {0, -1, 2, 4}> {"
            " i = Reshape(u, heads) k = Transpose<perm = [0, 2, 3, 1]>(i)"
            " c = Concat<axis = 2>(p, k)"
            " y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.5>(x, c, c) }"
        ),
    ),
    "more new keys than rows": (
        "multiHeadAttentionWithPast",
        (
            "(float[2, 3, 8] x, float[2, 5, 8] u, float[2, 2, 3, 4] p, float[2, 2, 3, 4] g)"
            " => (float[2, 3, 8] y) <int64[4] heads = {0, -1, 2, 4}> {"
            " i = Reshape(u, heads) j = Reshape(u, heads)"
            " k = Transpose<perm = [0, 2, 1, 3]>(i) v = Transpose<perm = [0, 2, 1, 3]>(j)"
            " c = Concat<axis = 2>(p, k) d = Concat<axis = 2>(g, v)"
            " y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.5>(x, c, d) }"
        ),
    ),
    "four axes": (
        "skipLayerNormalization",
        (
            "(float[1, 2, 3, 4] x, float[1, 2, 3, 4] z) => (float[1, 2, 3, 4] y)"
            " <float[4] g = {1, 2, 3, 4}> { s = Add(x, z) y = LayerNormalization(s, g) }"
        ),
    ),
}


def head_for(name: str) -> str:
    """Return the head of a model that has the operators of a rule."""
    return HEAD.replace("17", "23") if "Simplified" in name else HEAD


@pytest.mark.parametrize("what", LIKE)
def test_what_only_looks_like_a_fused_operator_stays(what: str) -> None:
    rule, text = LIKE[what]
    model = parser.parse_model(head_for(rule) + text)
    if "com.microsoft" in text:
        model.opset_import.add(domain="com.microsoft", version=1)
    rules = pl.Rules.load(BOOK, name="like")
    loaded = pl.load(model)
    made = loaded.optimize_for(rules, only=[rule], target="onnxruntime")
    assert [node.op for node in made.symbol.nodes()] == [node.op for node in loaded.symbol.nodes()]


NORMALIZED = {
    "SkipLayerNormalization": (
        "a = Add(x, c) s = Add(z, a) y = LayerNormalization<epsilon = 1.0>(s, g, c)"
    ),
    "SkipSimplifiedLayerNormalization": "s = Add(z, x) y = RMSNormalization<epsilon = 1.0>(s, g)",
}


PARTS = "p = Pow(s, two) m = ReduceMean<axes = [-1]>(p) a = Add(m, e) r = Sqrt(a)"
WITH_PARTS = {
    "a quotient": "d = Div(s, r) y = Mul(d, g)",
    "a reciprocal": "i = Reciprocal(r) d = Mul(s, i) y = Mul(g, d)",
    "a quotient of 1": "i = Div(one, r) d = Mul(i, s) y = Mul(d, g)",
}


@pytest.mark.parametrize("what", WITH_PARTS)
def test_a_sum_whose_mean_square_is_normalized(what: str) -> None:
    """ONNX Runtime itself fuses some of the parts, and is faster then: only if it is asked for."""
    text = (
        "(float[b, n, 4] x, float[b, n, 4] z) => (float[b, n, 4] y, float[b, n, 4] s)"
        " <float[4] g = {1, 2, 3, 4}, float two = {2}, float e = {0.5}, float one = {1}>"
        f" {{ s = Add(x, z) {PARTS} {WITH_PARTS[what]} }}"
    )
    before = parser.parse_model(HEAD + text).SerializeToString()
    after = content_of(pl.load(before).optimize_for("fuseSkips"))
    assert list(operators(after)) == ["SkipSimplifiedLayerNormalization"]
    plain = content_of(pl.load(before).simplify(target="onnxruntime"))
    assert "SkipSimplifiedLayerNormalization" not in operators(plain)
    random = np.random.default_rng(0)
    feeds: dict[str, object] = {
        name: random.standard_normal((2, 3, 4)).astype(np.float32) for name in "xz"
    }
    for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("made", NORMALIZED)
def test_a_sum_that_is_normalized_and_used_again(made: str) -> None:
    """On a CPU this is slower than the parts: only if it is asked for."""
    text = (
        "(float[b, n, 4] x, float[b, n, 4] z) => (float[b, n, 4] y, float[b, n, 4] s)"
        f" <float[4] g = {{1, 2, 3, 4}}, float[4] c = {{4, 3, 2, 1}}> {{ {NORMALIZED[made]} }}"
    )
    before = parser.parse_model(head_for(made) + text).SerializeToString()
    plain = content_of(pl.load(before).simplify(target="onnxruntime"))
    assert operators(plain) == operators(before)
    after = content_of(pl.load(before).optimize_for("fuseSkips"))
    assert list(operators(after)) == [made]
    random = np.random.default_rng(0)
    for batch, rows in ((1, 3), (8, 7)):
        feeds: dict[str, object] = {
            name: random.standard_normal((batch, rows, 4)).astype(np.float32) for name in "xz"
        }
        for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_a_whole_number_is_a_real_attribute() -> None:
    """Operators of com.microsoft have no schema that tells the types of attributes."""
    text = """(float[b, 3] x) => (float[b, 3] y) <float two = {2}> {
        a = Mul(x, two) s = Sigmoid(a) y = Mul(x, s) }"""
    before = parser.parse_model(HEAD + text).SerializeToString()
    after = content_of(pl.load(before).simplify(target="onnxruntime"))
    (node,) = onnx.load_from_string(after).graph.node
    assert (node.op_type, node.attribute[0].f) == ("QuickGelu", 2.0)


def test_bodies_of_functions_import_the_domain() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17, "own" : 1]>
        g (float[2, 3] x) => (float[2, 3] y) { a = own.f(x) y = own.f(a) }
        <domain: "own", opset_import: ["" : 17]> f (x) => (y) { s = Sigmoid(x) y = Mul(x, s) }"""
    before = parser.parse_model(text).SerializeToString()
    after = content_of(pl.load(before).simplify(target="onnxruntime"))
    feeds: dict[str, object] = {"x": np.arange(-3, 3, dtype=np.float32).reshape(2, 3)}
    np.testing.assert_allclose(results(after, feeds)[0], results(before, feeds)[0], rtol=1e-5)


def test_the_exact_pipeline_makes_none() -> None:
    after = content_of(pl.load(blocks("gpt", 17)[0]).simplify(exact=True, target="onnxruntime"))
    assert {each.domain for each in onnx.load_from_string(after or b"").graph.node} == {""}


def test_a_target_that_is_unknown() -> None:
    with pytest.raises(ValueError, match="target must be one of onnx, onnxruntime, not 'ort'"):
        pl.simplify(blocks("gpt", 17)[0], target="ort")  # type: ignore[arg-type]
