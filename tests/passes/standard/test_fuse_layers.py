"""fuseLayers: layers of transformers that are written as many operators."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import passlib as pl
import transformers
from passlib.model.edits import content_of
from passlib.passes.cost import cost_of
from passlib.passes.standard.groups import more_layers
from transformers import operators, results

# Operators of two blocks: as exported, and after simplify with operator sets 17, 20 and 23.
COUNTS = {
    "bert": (106, 72, 64, 64),
    "cached": (119, 87, 79, 49),
    "gpt": (102, 68, 54, 30),
    "llama": (153, 125, 125, 41),
    "vit": (106, 68, 60, 40),
    "whisper": (164, 112, 104, 82),
}
OPSETS = (17, 20, 23)


@cache
def blocks(name: str, opset: int) -> tuple[bytes, bytes]:
    """Return a model of two blocks, and what simplify makes of it."""
    before = transformers.BLOCKS[name](opset)
    after = content_of(pl.load(before).simplify())
    return before, after


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", COUNTS)
def test_operators_of_two_blocks(name: str, opset: int) -> None:
    before, after = blocks(name, opset)
    found = (operators(before).total(), operators(after).total())
    assert found == (COUNTS[name][0], COUNTS[name][1 + OPSETS.index(opset)])
    onnx.checker.check_model(onnx.load_from_string(after), full_check=True)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", COUNTS)
def test_numbers_and_open_sizes_stay(name: str, opset: int) -> None:
    transformers.assert_equal(name, *blocks(name, opset), ((1, 6), (3, 6), (2, 1)))


@pytest.mark.parametrize("name", COUNTS)
def test_a_second_time_changes_nothing(name: str) -> None:
    after = blocks(name, 23)[1]
    assert operators(content_of(pl.load(after).simplify())) == operators(after)


@pytest.mark.parametrize("low", [-1e4, -1e9, np.finfo(np.float32).min])
def test_rows_that_a_mask_hides_whole(low: float) -> None:
    """Softmax gives each value the same share; ONNX Runtime's Attention would give 0."""
    before, after = blocks("llama", 23)
    feeds = transformers.feeds(before, 1)
    feeds["mask"][:] = 0
    feeds["mask"][..., 2, :] = low
    if low == -1e4:  # whose sum with the scores still differs
        feeds["mask"][..., 2, :3] = 0
    for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_a_row_of_a_mask_for_all_rows() -> None:
    """ONNX Runtime fuses such blocks itself, which is faster: only if it is asked for."""
    before, plain = blocks("bert", 23)
    book = pl.Rules.load(Path(pl.__file__).parent / "rules" / "attention.rules", name="rows")
    made = pl.load(plain).optimize_for(book, only=["attentionWithRowOfMask"]).simplify()
    after = content_of(made)
    assert after is not None
    assert (operators(after)["Attention"], operators(after).total()) == (2, 44)
    feeds = transformers.feeds(before, 3)
    for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_the_exact_pipeline_leaves_layers_alone() -> None:
    before = blocks("bert", 23)[0]
    after = content_of(pl.load(before).simplify(exact=True))
    assert after is not None
    assert not {"LayerNormalization", "Gelu", "Attention"} & operators(after).keys()


HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '
LIKE = {
    "scores that are an output": (
        "(float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v)"
        " => (float[1, 2, 3, 5] s, float[1, 2, 3, 4] y) {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }"
    ),
    "Softmax along another axis": (
        "(float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v) => (float[1, 2, 3, 4] y) {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax<axis = 2>(s)"
        " y = MatMul(p, v) }"
    ),
    "one head of keys for all": (
        "(float[1, 2, 3, 4] q, float[1, 1, 5, 4] k, float[1, 2, 5, 4] v) => (float[1, 2, 3, 4] y) {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }"
    ),
    "double": (
        "(double[1, 2, 3, 4] q, double[1, 2, 5, 4] k, double[1, 2, 5, 4] v)"
        " => (double[1, 2, 3, 4] y) {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) p = Softmax(s) y = MatMul(p, v) }"
    ),
    "a finite number for what the mask hides": (
        "(float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v, bool[3, 5] m)"
        " => (float[1, 2, 3, 4] y) <float low = {-1e9}> {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) w = Where(m, s, low)"
        " p = Softmax(w) y = MatMul(p, v) }"
    ),
    "a mean of another value": (
        "(float[2, 4] x, float[2, 4] z) => (float[2, 4] y) <int64[1] a = {-1}, float e = {0.001}> {"
        " m = ReduceMean(z, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) s = Add(v, e)"
        " r = Sqrt(s) y = Div(d, r) }"
    ),
    "a deviation along another axis": (
        "(float[4, 4] x) => (float[4, 4] y)"
        " <int64[1] a = {-1}, int64[1] b = {0}, float e = {0.001}> {"
        " m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, b) s = Add(v, e)"
        " r = Sqrt(s) y = Div(d, r) }"
    ),
    "another factor in Gelu": (
        "(float[2, 4] x) => (float[2, 4] y) <float c = {1.5}, float o = {1}, float h = {0.5}> {"
        " d = Div(x, c) e = Erf(d) a = Add(e, o) p = Mul(x, a) y = Mul(p, h) }"
    ),
}


@pytest.mark.parametrize("what", LIKE)
def test_what_only_looks_like_a_layer_stays(what: str) -> None:
    model = pl.load(parser.parse_model(HEAD + LIKE[what]))
    names = {node.op for node in model.simplify().symbol.nodes()}
    assert not {"LayerNormalization", "Gelu", "Attention", "RMSNormalization"} & names


def test_an_attribute_of_an_earlier_operator_set() -> None:
    """The file is wrong: from 18 on, the axes are an input."""
    model = parser.parse_model(
        HEAD
        + """(float[2, 4] x) => (float[2, 4] y) <float e = {0.001}> {
        m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) q = Mul(d, d) v = ReduceMean<axes = [-1]>(q)
        s = Add(v, e) r = Sqrt(s) y = Div(d, r) }"""
    )
    assert len(pl.load(model).optimize_for("fuseLayers").symbol.nodes()) > 1


@pytest.mark.parametrize("name", COUNTS)
def test_what_a_higher_operator_set_would_fuse(name: str) -> None:
    after = pl.load(blocks(name, 17)[1])
    found = more_layers(after)
    assert found is not None
    opset, fewer = found
    assert opset in (20, 23)
    raised = after.with_opset(opset).simplify()
    assert cost_of(after).nodes - cost_of(raised).nodes >= fewer > 0
    assert more_layers(pl.load(blocks(name, 23)[1])) is None


def heads(mask: str, *, guarded: bool = True, cap: bool = False) -> str:
    """Return a model of heads whose mask may hide all values of a row."""
    limit = "l = Div(s, four) u = Tanh(l) r = Mul(u, four)" if cap else "r = Identity(s)"
    guard = "n = IsNaN(p) g = Where(n, zero, p)" if guarded else "g = Identity(p)"
    return (
        f"{HEAD}(float[b, 2, n, 4] q, float[b, 2, m, 4] k, float[b, 2, m, 4] v, bool[n, m] c)"
        " => (float[b, 2, n, 4] y)"
        " <float zero = {0}, float two = {2}, float four = {4}, float low = {-1e9}> {"
        " inf = Log(zero) t = Transpose<perm = [0, 1, 3, 2]>(k) w = MatMul(q, t) s = Div(w, two)"
        f" {limit} {mask} p = Softmax<axis = -1>(a) {guard} y = MatMul(g, v) }}"
    )


MASKED = {
    "numbers for hidden values": (heads("h = Where(c, zero, low) a = Add(r, h)"), "Where"),
    "minus infinity for hidden values": (heads("h = Where(c, zero, inf) a = Add(r, h)"), ""),
    "hidden values chosen": (heads("a = Where(c, r, inf)"), ""),
    "no mask": (heads("a = Identity(r)"), ""),
    "a limit": (
        heads("h = Where(c, zero, low) a = Add(r, h)", guarded=False, cap=True),
        "Where",
    ),
}


@pytest.mark.parametrize("what", MASKED)
def test_attention_whose_rows_may_be_hidden_whole(what: str) -> None:
    text, others = MASKED[what]
    before = parser.parse_model(text).SerializeToString()
    after = content_of(pl.load(before).simplify())
    assert after is not None
    assert sorted(operators(after)) == sorted(["Attention", *others.split()])
    random = np.random.default_rng(0)
    for n, m in ((3, 5), (1, 1)):
        feeds: dict[str, object] = {
            name: random.standard_normal((2, 2, size, 4)).astype(np.float32)
            for name, size in zip("qkv", (n, m, m), strict=True)
        }
        for first in (0, -1):
            feeds["c"] = np.tril(np.ones((n, m), bool), first)
            for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
                np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def triangle(mask: str) -> str:
    """Return a model of heads with a mask of open sizes."""
    return (
        f"{HEAD}(float[b, 2, n, 4] q, float[b, 2, m, 4] k, float[b, 2, m, 4] v)"
        " => (float[b, 2, n, 4] y)"
        " <float zero = {0}, float fill = {1}, float low = {-1e9}, bool true = {1},"
        " int64 i0 = {0}, int64 i1 = {1}, int64[1] axis = {1}> {"
        " t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) inf = Log(zero)"
        " rows = Shape<start = 2, end = 3>(q) columns = Shape<start = 2, end = 3>(k)"
        f" size = Concat<axis = 0>(rows, columns) {mask}"
        " a = Add(s, h) p = Softmax<axis = -1>(a) y = MatMul(p, v) }"
    )


LOWER = "u = Expand(fill, size) l = Trilu<upper = 0>(u) e = Equal(l, zero) h = Where(e, inf, zero)"
PLACES = (
    "n0 = Squeeze(rows) m0 = Squeeze(columns) r0 = Range(i0, n0, i1) r = Unsqueeze(r0, axis)"
    " c = Range(i0, m0, i1)"
)
SEEN = PLACES + " e = LessOrEqual(c, r) h = Where(e, zero, inf)"
LATER = PLACES + " g = Greater(c, r) e = Not(g) h = Where(e, zero, inf)"
SHIFTED = "m1 = Add(m0, i1) c = Range(i1, m1, i1)"
TRIANGLES = {
    "ones below": (LOWER, True),
    "ones below, with a diagonal": (LOWER.replace("(u)", "(u, i0)"), True),
    "true below": ("u = Expand(true, size) l = Trilu<upper = 0>(u) h = Where(l, zero, inf)", True),
    "minus infinity above": ("u = Expand(inf, size) h = Trilu<upper = 1>(u, i1)", True),
    "another diagonal": (LOWER.replace("(u)", "(u, i1)"), False),
    "minus infinity on the diagonal": ("u = Expand(inf, size) h = Trilu<upper = 1>(u)", False),
    "a number for hidden values": (LOWER.replace("e, inf", "e, low"), False),
    "hidden values below": (LOWER.replace("e, inf, zero", "e, zero, inf"), False),
    "columns up to the row": (SEEN, True),
    "rows from the column on": (SEEN.replace("LessOrEqual(c, r)", "GreaterOrEqual(r, c)"), True),
    "no later columns": (LATER, True),
    "no earlier rows": (LATER.replace("Greater(c, r)", "Less(r, c)"), True),
    "columns before the row": (SEEN.replace("LessOrEqual", "Less"), False),
    "columns from the row on": (SEEN.replace("LessOrEqual", "GreaterOrEqual"), False),
    "a number for later columns": (SEEN.replace("inf)", "low)"), False),
    "columns counted from 1": (SEEN.replace("c = Range(i0, m0, i1)", SHIFTED), False),
    "ones above": (LOWER.replace("upper = 0", "upper = 1"), False),
}


@pytest.mark.parametrize("what", TRIANGLES)
def test_masks_of_a_triangle_are_causal(what: str) -> None:
    mask, is_causal = TRIANGLES[what]
    before = parser.parse_model(triangle(mask)).SerializeToString()
    after = content_of(pl.load(before).simplify())
    assert after is not None
    found = operators(after)
    assert found["Attention"] == 1
    assert (found.total() == 1) == is_causal
    random = np.random.default_rng(0)
    for n, m in ((3, 3), (3, 5), (5, 3), (1, 4)):
        feeds: dict[str, object] = {
            name: random.standard_normal((2, 2, size, 4)).astype(np.float32)
            for name, size in zip("qkv", (n, m, m), strict=True)
        }
        for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
            known = ~np.isnan(its)  # a row that is hidden whole
            assert known.all() or not is_causal
            np.testing.assert_allclose(mine[known], its[known], rtol=1e-4, atol=1e-5)


LOWEST = float(np.finfo(np.float32).min)
MASKS = {
    "minus infinity above": (np.triu(np.full((3, 5), -np.inf), 1), True),
    "the lowest number above": (np.triu(np.full((1, 1, 3, 5), LOWEST), 1), True),
    "the diagonal, too": (np.triu(np.full((3, 5), LOWEST)), False),
    "fewer hidden": (np.triu(np.full((3, 5), -np.inf), 2), False),
    "a number above": (np.triu(np.full((3, 5), -1e9), 1), False),
    "a number below": (np.triu(np.full((3, 5), LOWEST), 1) + np.tri(3, 5, -1) / 2, False),
    "another in one head": (
        np.stack([np.triu(np.full((3, 5), LOWEST), k) for k in (1, 2)])[None],
        False,
    ),
}


@pytest.mark.parametrize("what", MASKS)
def test_a_constant_mask_of_a_triangle_is_causal(what: str) -> None:
    mask, is_causal = MASKS[what]
    text = """(float[b, 2, 3, 4] q, float[b, 2, 5, 4] k, float[b, 2, 5, 4] v)
        => (float[b, 2, 3, 4] y) {
        t = Transpose<perm = [0, 1, 3, 2]>(k) s = MatMul(q, t) a = Add(s, mask)
        p = Softmax<axis = -1>(a) y = MatMul(p, v) }"""
    model = parser.parse_model(HEAD + text)
    model.graph.initializer.append(numpy_helper.from_array(mask.astype(np.float32), "mask"))
    before = model.SerializeToString()
    after = content_of(pl.load(before).simplify())
    assert after is not None
    made = onnx.load_from_string(after).graph
    (node,) = made.node
    assert node.op_type == "Attention"
    assert ("is_causal" in {each.name for each in node.attribute}) == is_causal
    assert bool(made.initializer) != is_causal
    random = np.random.default_rng(0)
    feeds: dict[str, object] = {
        name: random.standard_normal((2, 2, size, 4)).astype(np.float32)
        for name, size in zip("qkv", (3, 5, 5), strict=True)
    }
    for mine, its in zip(results(after, feeds), results(before, feeds), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("infinite", ["h = Where(c, inf, inf) a = Add(r, h)", "a = Add(r, m)"])
def test_a_test_for_nan_stays_where_nan_may_be(infinite: str) -> None:
    text = heads(infinite).replace("bool[n, m] c)", "bool[n, m] c, float[n, m] m)")
    names = {node.op for node in pl.load(parser.parse_model(text)).simplify().symbol.nodes()}
    assert {"IsNaN", "Softmax"} <= names


ROTARY = {
    "halves": (
        "low, high = Split<axis = -1, num_outputs = 2>(x) a = Mul(low, c) b = Mul(high, s)"
        " d = Sub(a, b) e = Mul(high, c) f = Mul(low, s) g = Add(e, f) y = Concat<axis = -1>(d, g)"
    ),
    "neighbours": (
        "low = Slice(x, i0, i9, i3, i2) high = Slice(x, i1, i9, i3, i2) a = Mul(low, c)"
        " b = Mul(high, s) d = Sub(a, b) e = Mul(high, c) f = Mul(low, s) g = Add(e, f)"
        " u = Unsqueeze(d, i4) w = Unsqueeze(g, i4) z = Concat<axis = 4>(u, w)"
        " y = Reshape(z, shape)"
    ),
    "one row of angles": (
        "p = Concat<axis = -1>(angles, angles) o = Cos(p) q = Sin(p) c2 = Unsqueeze(o, i1)"
        " s2 = Unsqueeze(q, i1) low = Slice(x, i0, i4, i3) high = Slice(x, i4, i9, i3)"
        " n = Neg(high) t = Concat<axis = -1>(n, low) a = Mul(x, c2) b = Mul(t, s2) y = Add(a, b)"
    ),
    "places in tables": (
        "o = Gather(table, ids) c2 = Unsqueeze(o, i1) q = Gather(other, ids)"
        " s2 = Unsqueeze(q, i1) low = Slice(x, i0, i4, i3) high = Slice(x, i4, i9, i3)"
        " n = Neg(high) t = Concat<axis = -1>(n, low) a = Mul(x, c2) b = Mul(t, s2) y = Add(a, b)"
    ),
    "constants": (
        "low = Slice(x, i0, i4, i3) high = Slice(x, i4, i9, i3) n = Neg(high)"
        " t = Concat<axis = -1>(n, low) a = Mul(x, fixed) b = Mul(t, fixed) y = Add(a, b)"
    ),
}


def rotary(body: str, *, width: int = 8) -> onnx.ModelProto:
    """Return a model of two heads, turned by angles."""
    numbers = ", ".join(f"int64[1] i{each} = {{{each}}}" for each in (0, 1, 2, 3, 4, 9))
    half = np.random.default_rng(1).standard_normal((1, 1, 3, 4)).astype(np.float32)
    fixed = np.concatenate([half, half], -1)
    text = (
        f"{HEAD}(float[2, 2, 3, {width}] x, float[2, 1, 3, 4] c, float[2, 1, 3, 4] s,"
        " float[1, 3, 4] angles, int64[2, 3] ids) => (float[2, 2, 3, 8] y)"
        f" <{numbers}, int64[4] shape = {{2, 2, 3, 8}}> {{ {body} }}"
    )
    made = parser.parse_model(text)
    for name, array in (("fixed", fixed), ("other", -fixed[0, 0]), ("table", fixed[0, 0])):
        made.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return made


@pytest.mark.parametrize("what", ROTARY)
def test_rotary_embedding(what: str) -> None:
    model = rotary(ROTARY[what])
    if what == "constants":
        for value in (*model.graph.input, *model.graph.output):
            if value.name in "xy":
                value.type.tensor_type.shape.dim[0].dim_value = 1
    before = model.SerializeToString()
    after = content_of(pl.load(before).simplify())
    assert after is not None
    assert operators(after)["RotaryEmbedding"] == 1
    assert operators(after).total() < operators(before).total()
    random = np.random.default_rng(0)
    feeds: dict[str, object] = {}
    for value in model.graph.input:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        drawn = random.standard_normal(shape).astype(np.float32)
        feeds[value.name] = random.integers(-3, 3, shape) if value.name == "ids" else drawn
    names = {each.name for each in onnx.load_from_string(after).graph.input}
    mine = results(after, {name: each for name, each in feeds.items() if name in names})
    np.testing.assert_allclose(mine[0], results(before, feeds)[0], rtol=1e-4, atol=1e-5)


def test_tables_of_unequal_halves_stay() -> None:
    model = rotary(ROTARY["places in tables"])
    table = np.arange(24, dtype=np.float32).reshape(3, 8)
    model.graph.initializer.pop()
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    assert "RotaryEmbedding" not in operators(content_of(pl.load(model).simplify()))
