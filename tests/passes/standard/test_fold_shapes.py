"""foldShapes: computations with sizes, with and without open ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib
from passlib.proof.counterexamples import same_bits
from rewriting import after, operators, parsed, results

OPEN = {
    "Reshape to sizes at their places": (
        """g (float[N, 4, M] x) => (float[A, B, C] y)
        <int64 i0 = {0}, int64 i2 = {2}, int64[1] z = {0}, int64[1] four = {4}>
        {
          s = Shape(x) a = Gather(s, i0) b = Gather(s, i2)
          a1 = Unsqueeze(a, z) b1 = Unsqueeze(b, z)
          t = Concat <axis = 0> (a1, four, b1)
          n = Neg(x) y = Reshape(n, t)
        }""",
        {"Neg": 1, "Reshape": 1},
    ),
    "Reshape to one product": (
        """g (float[N, 4, M] x) => (float[A, B] y)
        <int64 i0 = {0}, int64 i2 = {2}, int64[1] z = {0}, int64[1] four = {4}>
        {
          s = Shape(x) a = Gather(s, i0) b = Gather(s, i2)
          p = Mul(a, b) p1 = Unsqueeze(p, z)
          t = Concat <axis = 0> (p1, four)
          r = Transpose <perm = [0, 2, 1]> (x) y = Reshape(r, t)
        }""",
        {"Transpose": 1, "Reshape": 1},
    ),
    "a comparison with a size that cannot be -1": (
        """g (float[N, 3] x) => (float[N, 3] y) <int64[2] t = {-1, 3}, int64[2] m = {-1, -1}>
        {
          s = Shape(x) e = Equal(s, m) c = Where(e, t, s) y = Expand(x, c)
        }""",
        {"Shape": 1, "Where": 1, "Expand": 1},
    ),
    "known sizes of an input that is partly open": (
        """g (float[N, 6] x) => (float[A, B, C] y)
        <int64[1] one = {1}, int64[1] m = {-1}, int64[1] two = {2}>
        {
          s = Shape(x) six = Gather(s, one) h = Div(six, two)
          t = Concat <axis = 0> (m, h, two)
          y = Reshape(x, t)
        }""",
        {"Reshape": 1},
    ),
    "an error that stays": (
        """g (float[N, 6] x, float[M, 6] u) => (float[A, B] y)
        <int64[1] z = {0}, int64[1] six = {6}>
        {
          s = Shape(u) a = Gather(s, z) t = Concat <axis = 0> (a, six) y = Reshape(x, t)
        }""",
        {"Shape": 1, "Gather": 1, "Concat": 1, "Reshape": 1},
    ),
    "empty values: 0 and -1 do not go together": (
        """g (float[N, M, K] x) => (float[A, B] y)
        <int64 i0 = {0}, int64 i1 = {1}, int64 i2 = {2}, int64[1] z = {0}>
        {
          s = Shape(x) a = Gather(s, i0) b = Gather(s, i1) c = Gather(s, i2)
          p = Mul(b, c) a1 = Unsqueeze(a, z) p1 = Unsqueeze(p, z)
          t = Concat <axis = 0> (a1, p1) y = Reshape(x, t)
        }""",
        {"Shape": 1, "Gather": 3, "Mul": 1, "Unsqueeze": 2, "Concat": 1, "Reshape": 1},
    ),
}

THROUGH_FLOATS = {
    "a division": (
        """s = Shape(x) n = Gather(s, i0) f = Cast <to = 1> (n) h = Mul(f, two) d = Div(h, two)
           w = Floor(d) c = Cast <to = 7> (w) u = Unsqueeze(c, z)
           t = Concat <axis = 0> (u, m, m1) y = Reshape(x, t)""",
        {"Reshape": 1},
    ),
    "a division with a rest": (
        """s = Shape(x) n = Gather(s, i0) f = Cast <to = 1> (n) d = Div(f, two) w = Floor(d)
           c = Cast <to = 7> (w) u = Unsqueeze(c, z) v = Mul(u, m2) e = Concat <axis = 0> (v, m, m)
           y = Expand(x, e)""",
        None,
    ),
    "a factor that float32 does not have": (
        """s = Shape(x) n = Gather(s, i0) f = Cast <to = 1> (n) h = Mul(f, tenth) d = Mul(h, ten)
           c = Cast <to = 7> (d) u = Unsqueeze(c, z) e = Concat <axis = 0> (u, m, m1)
           y = Reshape(x, e)""",
        None,
    ),
    "a product of open sizes": (
        """s = Shape(x) n = Gather(s, i0) k = Gather(s, i2) f = Cast <to = 1> (n)
           g = Cast <to = 1> (k) h = Mul(f, g) c = Cast <to = 7> (h) u = Unsqueeze(c, z)
           e = Concat <axis = 0> (u, m1, m) y = Reshape(x, e)""",
        None,
    ),
}


@pytest.mark.parametrize("name", THROUGH_FLOATS)
def test_sizes_in_floating_point(name: str, tmp_path: Path) -> None:
    """They become constants if an option allows it, and if they are certain."""
    body, expected = THROUGH_FLOATS[name]
    data = parsed(
        f"""g (float[N, 1, M] x) => (float[A, B, C] y)
        <int64 i0 = {{0}}, int64 i2 = {{2}}, int64[1] z = {{0}}, int64[1] m = {{1}},
         int64[1] m1 = {{-1}}, int64[1] m2 = {{2}}, float two = {{2}},
         float tenth = {{0.1}}, float ten = {{10}}> {{ {body} }}"""
    )
    before = operators(data)
    assert operators(after(data, "foldShapes", tmp_path)) == before
    made = after(data, "foldShapes{large_sizes=false}", tmp_path)
    assert operators(made) == (expected or before)
    given = feeds(data, {"N": 4, "M": 3})
    assert same_bits(results(made, given), results(data, given))


FEEDS = {"N": 2, "M": 3, "K": 5}


def feeds(data: bytes, sizes: dict[str, int]) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    random = np.random.default_rng(1)
    return {
        value.name: random.standard_normal(
            [dim.dim_value or sizes[dim.dim_param] for dim in value.type.tensor_type.shape.dim]
        ).astype(np.float32)
        for value in onnx.ModelProto.FromString(data).graph.input
    }


RELATED = {
    "padding": ("y = Pad (x, p)", [1, 0, 2, 5]),
    "a slice to a computed end": ("e = Shape <end = 1> (x) y = Slice (x, q, e, q)", [0, 0, 0, 0]),
    "a window": ("y = MaxPool <kernel_shape = [3, 2]> (x)", [0, 0, -2, -1]),
    "a dilated window": (
        "y = MaxPool <kernel_shape = [3, 2], dilations = [2, 3]> (x)",
        [0, 0, -4, -3],
    ),
    "a convolution": ("y = Conv <pads = [1, 0, 0, 2]> (x, w)", [0, 3, -1, 1]),
    "a dilated convolution": ("y = Conv <dilations = [2, 1]> (x, w)", [0, 3, -4, -1]),
    "a convolution with as many pads": ("y = Conv <pads = [1, 1, 1, 0]> (x, w)", [0, 3, 0, 0]),
}


@pytest.mark.parametrize("name", RELATED)
def test_results_whose_sizes_follow_from_open_ones(name: str, tmp_path: Path) -> None:
    nodes, expected = RELATED[name]
    model = parsed(f"""g (float[N, 2, M, K] x, int64[4] v) => (int64[4] z)
        <int64[1] q = {{0}}, int64[8] p = {{0, 0, 1, 2, 1, 0, 1, 3}},
        float[5, 2, 3, 2] w = {{{", ".join(["1"] * 60)}}}>
        {{ {nodes} a = Shape(x) b = Shape(y) n = Neg(a) d = Add(b, n) z = Add(d, v) }}""")
    folded = after(model, "foldShapes", tmp_path)
    assert operators(folded) == {"Add": 1}
    loaded = passlib.load(folded)
    names = [each.node.name for each in loaded.symbol.nodes()[-1].inputs]
    assert [loaded.args[name].tolist() for name in names if name in loaded.args] == [expected]


COMPUTED = {
    "a remainder": ("d = Mod (c, f)", 1),
    "a comparison": ("b = Greater (c, f) d = Cast <to = 7> (b)", 1),
    "a filled list": ("e = ConstantOfShape <value = int64[1] {7}> (i) d = Add (c, e)", 16),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_known_sizes_of_open_shapes_are_computed(name: str, tmp_path: Path) -> None:
    nodes, expected = COMPUTED[name]
    model = parsed(f"""g (float[N, 9] x, int64[1] v) => (int64[1] z)
        <int64[1] i = {{1}}, int64[1] f = {{4}}>
        {{ s = Shape(x) c = Gather(s, i) {nodes} z = Add(d, v) }}""")
    folded = after(model, "foldShapes", tmp_path)
    assert operators(folded) == {"Add": 1}
    loaded = passlib.load(folded)
    names = [each.node.name for each in loaded.symbol.nodes()[-1].inputs]
    assert [loaded.args[name].tolist() for name in names if name in loaded.args] == [[expected]]


@pytest.mark.parametrize("sizes", [FEEDS, {"N": 1, "M": 1, "K": 1}, {"N": 0, "M": 3, "K": 2}])
@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name: str, sizes: dict[str, int], tmp_path: Path) -> None:
    text, expected = OPEN[name]
    data = parsed(text)
    made = after(data, "foldShapes", tmp_path)
    assert operators(made) == expected
    if name != "an error that stays":
        given = feeds(data, sizes)
        assert same_bits(results(made, given), results(data, given))
    else:
        with pytest.raises(Exception, match="Reshape"):
            results(made, feeds(data, FEEDS))


AFTER_AN_UNKNOWN_RANK = {
    "Transpose": ("Transpose <perm = [1, 0, 2]> (r)", 3),
    "Transpose without an order": ("Transpose(r)", 3),
    "Softmax": ("Softmax <axis = 1> (r)", 3),
    "Gather of one": ("Gather <axis = 1> (r, i1)", 2),
    "Gather of several": ("Gather <axis = -1> (r, z)", 3),
    "Unsqueeze": ("Unsqueeze(r, m1)", 4),
    "Squeeze": ("Squeeze(r, z)", 2),
    "ReduceSum": ("ReduceSum <keepdims = 0> (r, m1)", 2),
    "ReduceMean": ("ReduceMean <axes = [0]> (r)", 3),
    "ReduceSum of everything": ("ReduceSum(r)", 3),
    "Flatten": ("Flatten <axis = 2> (r)", 2),
}


@pytest.mark.parametrize("name", AFTER_AN_UNKNOWN_RANK)
def test_sizes_behind_a_shape_that_inference_does_not_follow(name: str, tmp_path: Path) -> None:
    """ONNX's inference does not know the rank of what is reshaped to a list of computed length."""
    call, rank = AFTER_AN_UNKNOWN_RANK[name]
    data = parsed(
        f"""g (float[4, 6] x) => (int64[{rank}] y)
        <int64 i1 = {{1}}, int64[1] z = {{0}}, int64[1] m1 = {{-1}}, int64[1] p1 = {{1}},
         float two = {{2}}>
        {{
          s = Shape(x) n = Gather(s, i1) f = Cast <to = 1> (n) d = Div(f, two)
          c = Cast <to = 7> (d) u = Unsqueeze(c, z) e = Concat <axis = 0> (p1, u, m1, p1)
          t = Slice(e, z, u, z) r = Reshape(x, t) v = {call} y = Shape(v)
        }}"""
    )
    made = after(data, "foldShapes", tmp_path)
    assert operators(made) == {"Identity": 1}
    assert same_bits(results(made, feeds(data, {})), results(data, feeds(data, {})))


FIXED = {
    "Shape, Slice, Cast": (
        """g (float[2, 3, 4] x) => (int32[2] y) <int64[1] a = {1}, int64[1] b = {3}>
        { s = Shape(x) t = Slice(s, a, b) y = Cast <to = 6> (t) }""",
        [3, 4],
    ),
    "Size and Range": (
        """g (float[2, 3] x) => (int64[K] y) <int64 z = {0}, int64 d = {2}>
        { n = Size(x) y = Range(z, n, d) }""",
        [0, 2, 4],
    ),
    "Shape with start and end": (
        """g (float[2, 3, 4] x) => (int64[1] y) { y = Shape <start = -2, end = -1> (x) }""",
        [3],
    ),
    "division towards zero": (
        """g (float[2, 7] x) => (int64[2] y) <int64[2] m = {-7, 3}, int64[2] n = {-7, -2}>
        { s = Shape(x) t = Sub(s, m) u = Sub(t, n) v = Mul(u, n) y = Div(v, m) }""",
        [16, -4],
    ),
    "a number that does not fit stays": (
        """g (float[2, 7] x) => (int32[2] y) <int32[2] m = {2000000000, 1}>
        { s = Shape(x) t = Cast <to = 6> (s) y = Mul(t, m) }""",
        [-294967296, 7],
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_known_sizes_are_computed_as_the_operators_do(name: str, tmp_path: Path) -> None:
    text, expected = FIXED[name]
    data = parsed(text)
    made = after(data, "foldShapes", tmp_path)
    given = feeds(data, {})
    assert results(data, given)[0].tolist() == expected
    assert same_bits(results(made, given), results(data, given))
    assert operators(made) == ({"Mul": 1} if "stays" in name else {"Identity": 1})


def test_a_condition_stays_for_who_resolves_it(tmp_path: Path) -> None:
    """The branch gives a Range lists of one element, which ONNX Runtime refuses where it knows."""
    data = parsed(
        """g (float[2, 3] x, int64[2] n, int64[1] first) => (int64[K] y)
        <int64 two = {2}, int64 zero = {0}, int64 one = {1}>
        {
          s = Shape(x) r = Size(s) c = Equal(r, two)
          d = If (c) <
            then_branch = t () => (int64[1] v) { v = Identity(first) },
            else_branch = e () => (int64[P] w) { w = Identity(n) }
          >
          y = Range(zero, d, one)
        }"""
    )
    given = {"x": np.zeros((2, 3), np.float32), "n": np.array([1, 2]), "first": np.array([1])}
    made = after(data, "foldShapes", tmp_path)
    assert operators(made) == operators(data)
    assert same_bits(results(made, given), results(data, given))
    resolved = after(data, "foldShapes{conditions=true}, resolveIf", tmp_path)
    assert "If" not in operators(resolved)


def test_stated_shapes_of_inner_values_are_not_believed(tmp_path: Path) -> None:
    """A file whose input was made open has shapes inside that no longer hold."""
    model = onnx.ModelProto.FromString(
        parsed(
            """g (float[N, 4] x) => (float[A] y) <int64[1] m = {-1}>
            { r = Relu(x) s = Shape(r) p = ReduceProd <keepdims = 1> (s) f = Cast <to = 1> (p)
              t = Reshape(r, m) y = Mul(t, f) }"""
        )
    )
    model.graph.value_info.append(
        onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, [1, 4])
    )
    data = model.SerializeToString()
    made = after(data, "foldShapes, removeNoOps", tmp_path)
    given = feeds(data, {"N": 3})
    assert same_bits(results(made, given), results(data, given))


def test_the_pass_is_known_without_loading_a_library() -> None:
    declared = passlib.library.passes()["foldShapes"]
    assert declared.dialects == ("onnx",)


@pytest.mark.parametrize("order", ["<", ">"])
def test_parameters_in_any_byte_order(order: str) -> None:
    @passlib.graph_pass(name="orderBytes", dialects=["onnx"], replace=True)
    def order_bytes(graph: passlib.Graph) -> None:
        graph.args["t"] = graph.args["t"].astype(f"{order}i8")

    text = "g (float[N] x) => (int64[2] y) <int64[2] t = {3, 4}> { r = Reshape(x, t) y = Shape(r) }"
    made = passlib.load(parsed(text)).optimize_for("orderBytes").simplify()
    y = made.run({"x": np.zeros(12, np.float32)})["y"]
    assert y.tolist() == [3, 4]
