"""Simplification of nested graphs, and of If whose one branch must be taken."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from commands import passlib_command
from passlib.graph.plain import operators_of
from passlib.proof.counterexamples import same_bits
from rewriting import operators, parsed, results, weights


def simplified(data: bytes, tmp_path: Any, **options: Any) -> bytes:
    made = tmp_path / "made.onnx"
    passlib.simplify(data, **options).save(made)
    onnx.checker.check_model(str(made))
    return bytes(made.read_bytes())


BRANCHES = """g (float[N, 4] x, bool c) => (float[N, 4] y)
<WEIGHTS, int64[2] s = {-1, 2}, int64[2] t = {-1, 4}, float two = {2}>
{
  n = Neg(x)
  y = If (c) <
    then_branch = then () => (float[N, 4] a) {
      b = Reshape(n, s) d = Reshape(b, t) e = Identity(d) f = MatMul(e, w) a = Mul(f, two) },
    else_branch = other () => (float[N, 4] a) {
      b = Shape(x) d = Reshape(x, b) e = Transpose(n) f = Transpose(e) a = Identity(f) }
  >
}""".replace("WEIGHTS", weights("w", 4, 4))


def test_branches_are_simplified(tmp_path: Any) -> None:
    data = parsed(BRANCHES)
    made = simplified(data, tmp_path)
    assert operators(made) == {"Neg": 1, "If": 1, "MatMul": 1, "Identity": 1}
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        np.testing.assert_allclose(results(made, feeds)[0], results(data, feeds)[0], rtol=1e-6)
    exact = simplified(data, tmp_path, exact=True)
    assert operators(exact)["Mul"] == 1
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        assert same_bits(results(exact, feeds), results(data, feeds))


def test_an_output_that_is_a_constant_which_nodes_use(tmp_path: Any) -> None:
    data = parsed("""g (float[2] x, bool c) => (float[2] y, float[2] z)
    {
      y, z = If (c) <
        then_branch = then () => (float[2] p, float[2] k) <float[2] k = {3, 4}, float[2] u = {1, 2}>
          { s = Add(u, u) a = Sub(x, s) p = Mul(a, k) },
        else_branch = other () => (float[2] q, float[2] o)
          { b = Identity(x) q = Neg(b) o = Abs(b) }
      >
    }""")
    made = simplified(data, tmp_path)
    assert operators(made) == {"If": 1, "Sub": 1, "Mul": 1, "Neg": 1, "Abs": 1}
    feeds = {"x": np.array([1, -2], np.float32), "c": np.array(True)}
    assert same_bits(results(made, feeds), results(data, feeds))


def test_sizes_that_only_a_run_tells(tmp_path: Any) -> None:
    """A branch has sizes of its own, even if its nodes have the names of nodes around it."""
    data = parsed("""g (float[N] x, float[M] w, bool c) => (int64[1, K] z, bool[2] y)
    {
      a = NonZero(x) z = Neg(a)
      y = If (c) <
        then_branch = then () => (bool[2] p)
          { b = NonZero(w) s = Shape(b) t = Shape(a) p = Equal(s, t) },
        else_branch = other () => (bool[2] q) { s = Shape(z) t = Shape(a) q = Equal(s, t) }
      >
    }""")
    made = simplified(data, tmp_path, exact=True)
    assert operators(made) == {
        "NonZero": 2,
        "Neg": 1,
        "If": 1,
        "Shape": 2,
        "Equal": 1,
        "Identity": 1,
    }
    for c in (True, False):
        feeds = {"x": np.ones(2, np.float32), "w": np.ones(3, np.float32), "c": np.array(c)}
        assert same_bits(results(made, feeds), results(data, feeds))


SCANNED = """g (float[2] s, float[2, N] x, float[N, 2] u) => (float[2] t, float[2, M] y)
{
  t, y = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0], scan_output_axes = [1],
    body = b (float[2] a, float[2] p, float[2] q) => (float[2] c, float[2] d)
      <float[2] one = {1, 1}, int64[1] two = {2}>
    { i = Mul(p, one) j = Reshape(i, two) k = Reshape(q, two) l = Add(j, k) c = Add(a, l)
      d = Mul(l, one) }> (s, x, u)
}"""


def test_what_a_scan_takes_in_each_round_has_the_sizes_of_its_inputs(tmp_path: Any) -> None:
    data = parsed(SCANNED)
    made = simplified(data, tmp_path)
    assert operators(made) == {"Scan": 1, "Add": 2}
    random = np.random.default_rng(5)
    shapes = {"s": (2,), "x": (2, 3), "u": (3, 2)}
    feeds = {name: random.standard_normal(size).astype(np.float32) for name, size in shapes.items()}
    assert same_bits(results(made, feeds), results(data, feeds))


def test_the_pipeline_simplifies_as_the_function_does(tmp_path: Any) -> None:
    data = parsed(BRANCHES)
    result = passlib.Pipeline("simplify").run(passlib.load(data))
    result.model.save(tmp_path / "piped.onnx")
    assert operators((tmp_path / "piped.onnx").read_bytes()) == operators(
        simplified(data, tmp_path)
    )
    assert result.modified
    assert [step.modified for step in result.steps if step.name == "simplifyNested"] == [True]
    kept = passlib.Pipeline("simplify{skip=[mergeReshapes]}").run(passlib.load(data)).model
    kept.save(tmp_path / "kept.onnx")
    assert operators((tmp_path / "kept.onnx").read_bytes())["Reshape"] > 0


def test_the_command_counts_operators_of_branches(tmp_path: Any) -> None:
    (tmp_path / "in.onnx").write_bytes(parsed(BRANCHES))
    done = passlib_command("opt", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--json")
    (facts,) = json.loads(done.stdout)
    assert facts["operators"]["Reshape"] == {"before": 3, "after": 0}
    assert facts["nodes"] == {"before": 12, "after": 4}


def test_names_of_branches_stay_unique(tmp_path: Any) -> None:
    """A weight that changes in a branch gets a name that nothing around it has."""
    data = parsed(BRANCHES.replace("n = Neg(x)", "m = MatMul(x, w) n = Neg(m)"))
    made = onnx.ModelProto.FromString(simplified(data, tmp_path))
    outer = {tensor.name for tensor in made.graph.initializer}
    outer |= {name for node in made.graph.node for name in node.output}
    for node in made.graph.node:
        for attribute in node.attribute:
            inside = {name for inner in attribute.g.node for name in inner.output}
            inside |= {tensor.name for tensor in attribute.g.initializer}
            assert inside.isdisjoint(outer)
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    feeds = {"x": x, "c": np.array(True)}
    have = results(made.SerializeToString(), feeds)[0]
    np.testing.assert_allclose(have, results(data, feeds)[0], rtol=1e-5)


def test_the_body_of_a_loop_whose_sizes_change(tmp_path: Any) -> None:
    """The shapes that the file states hold in the first round only."""
    data = parsed(
        """g (float[2] x, int64 m) => (float[K] y) <bool go = {1}, int64[1] s = {-1}>
        {
          y = Loop (m, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[K] w) {
            d = Identity(c) q = Concat <axis = 0> (v, v) n = Shape(v) r = Reshape(q, s)
            f = Cast <to = 1> (n) p = Add(r, f) w = Identity(p) }>
        }"""
    )
    made = simplified(data, tmp_path)
    assert sum(operators(made).values()) < sum(operators(data).values())
    for m in (0, 1, 3):
        feeds = {"x": np.ones(2, np.float32), "m": np.array(m)}
        assert same_bits(results(made, feeds), results(data, feeds))


SQUEEZE = """g (float[N, 3, T] x) => (float y)
<int64 last = {-1}, int64[1] one = {1}, int64[1] axis = {-1}, int64[1] first = {0}, WEIGHTS>
{
  s = Shape(x) d = Gather(s, last) e = Equal(d, one)
  q = If (e) <
    then_branch = then () => (float[A, B] a) { a = Squeeze(x, axis) },
    else_branch = other () => (float[A, B, C] a) { a = Identity(x) }
  >
  USE
}""".replace("WEIGHTS", weights("w", 1, 8, 3) + ", " + weights("r", 1, 8, 2))

USES = {
    "a layer that wants two axes": ("u = Unsqueeze(q, first) y, h, c = LSTM (u, w, r)", 0),
    "an operator for any number of axes": ("y = Relu(q)", 1),
    "a layer that wants the axis": ("y, h, c = LSTM (q, w, r)", 1),
}


@pytest.mark.parametrize("name", USES)
def test_a_condition_without_which_the_model_fails(name: str, tmp_path: Any) -> None:
    use, left = USES[name]
    use = use.replace("LSTM (", "LSTM <hidden_size = 2> (")
    data = parsed(SQUEEZE.replace("USE", use))
    made = simplified(data, tmp_path)
    assert operators(made)["If"] == left
    for n, t in ((2, 1), (2, 3), (1, 0)):
        x = np.random.default_rng(1).standard_normal((n, 3, t)).astype(np.float32)
        want, have = (outcome(model, x) for model in (data, made))
        assert (want is None) == (have is None)
        if want is not None and have is not None:
            assert same_bits(have, want)


def outcome(data: bytes, x: np.ndarray[Any, Any]) -> list[Any] | None:
    """Return the results, None if the model fails."""
    try:
        return results(data, {"x": x})
    except Exception:
        return None


def test_a_node_that_inference_would_not_take_is_no_error() -> None:
    """The runtime reports such a node when the model runs."""
    text = BRANCHES.replace(
        "n = Neg(x)", "n = Neg(x) p, q, r = Split<axis = 1, num_outputs = 2>(x)"
    )
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    model.graph.output.append(onnx.helper.make_tensor_value_info("r", onnx.TensorProto.FLOAT, None))
    found = operators_of(passlib.simplify(model).symbol.graph)
    assert found["Split"] == 1
    assert "Shape" not in found
