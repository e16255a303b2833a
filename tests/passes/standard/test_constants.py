"""constantsToWeights, weightsToConstants and nameUniquely: what changes in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import passlib
from onnx_models import behind_weight
from passlib.proof.counterexamples import same_bits
from rewriting import after, parsed, results

NESTED = """g (float[N, 4] x, bool c) => (float[N, 4] y) <float[4] w = {4, 3, 2, 1}>
{
  k = Constant <value_float = 2.0> () a = Mul(x, k)
  y = If(c) <
    then_branch = t () => (r) {
      m = Constant <value = float[4] {1, 2, 3, 4}> () b = Add(a, m)
      r = If(c) <
        then_branch = t2 () => (r2) {
          j = Constant <value_ints = [0, 2]> () z = Constant <value = int64[1] {0}> ()
          u = Gather <axis = 1> (b, j) v = Concat <axis = 1> (u, u) r2 = Mul(v, w)
        },
        else_branch = e2 () => (s2) { s2 = Neg(b) }>
    },
    else_branch = e () => (s) { l = Constant <value_string = "text"> () s = Neg(a) }>
}"""


def feeds(condition: bool) -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    return {"x": np.float32([[1, -2, 3, -4]]), "c": np.array(condition)}


def constants(graph: onnx.GraphProto) -> int:
    count = 0
    for node in graph.node:
        count += node.op_type == "Constant"
        count += sum(constants(each.g) for each in node.attribute if each.HasField("g"))
    return count


@pytest.mark.parametrize("nested", [True, False])
def test_constants_become_weights(nested: bool, tmp_path: Path) -> None:
    data = parsed(NESTED)
    made = after(data, "constantsToWeights", tmp_path, nested=nested)
    graph = onnx.ModelProto.FromString(made).graph
    arrays = {t.name: onnx.numpy_helper.to_array(t).tolist() for t in graph.initializer}
    assert {"w": [4, 3, 2, 1], "k": 2.0}.items() <= arrays.items()
    assert constants(graph) == (1 if nested else 4)  # text stays where it is
    if nested:
        assert [1.0, 2.0, 3.0, 4.0] in arrays.values()
        assert [0, 2] in arrays.values()
    for condition in (True, False):
        given = feeds(condition)
        assert same_bits(results(made, given), results(data, given))


def test_patterns_match_numbers_that_were_in_nested_graphs() -> None:
    text = """g (float[N] x, bool c) => (float[N] y) { y = If(c) <
      then_branch = t () => (r) { k = Constant <value_float = 0.5> () r = Mul(x, k) },
      else_branch = e () => (s) { s = Neg(x) }> }"""
    model = passlib.load(parsed(text))
    assert list(passlib.find(model, "Mul(x, 0.5)")) == []
    assert len(list(passlib.find(model.optimize_for("constantsToWeights"), "Mul(x, 0.5)"))) == 1


def test_a_constant_that_is_the_result_of_a_body_stays(tmp_path: Path) -> None:
    data = parsed(
        """g (bool c) => (float y) { y = If(c) <
        then_branch = t () => (r) { r = Constant <value_float = 1.5> () },
        else_branch = e () => (s) { s = Constant <value_float = 2.5> () }> }"""
    )
    made = after(data, "constantsToWeights", tmp_path)
    assert constants(onnx.ModelProto.FromString(made).graph) == 2
    assert same_bits(results(made, {"c": np.array(True)}), [np.float32(1.5)])


TYPES = ("float32", "float64", "float16", "int8", "uint64", "int64", "bool")


@pytest.mark.parametrize("name", TYPES)
def test_weights_become_constants(name: str, tmp_path: Path) -> None:
    array = np.array([[0, 1, 3], [2, 5, 7]], name)
    if array.dtype.kind == "f":
        array[0] = np.inf, np.nan, -0.0
    data = behind_weight(array).SerializeToString()
    made = after(data, "weightsToConstants", tmp_path)
    written = onnx.ModelProto.FromString(made).graph
    assert [node.op_type for node in written.node] == ["Constant", "Concat"]
    assert len(written.initializer) == 0
    given = {"x": array[:1]}
    assert same_bits(results(made, given), results(data, given))
    kept = after(data, "weightsToConstants", tmp_path, largest=5)
    assert onnx.ModelProto.FromString(kept).graph.initializer[0].name == "w"


def test_operators_get_names_of_their_own(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(
        parsed(
            """g (float[N] x, bool c) => (float[N] y) {
            a = Relu(x) b = Neg(a) d = Relu(b) y = If(c) <
              then_branch = t () => (r) { r = Abs(d) },
              else_branch = e () => (s) { s = Exp(d) }> }"""
        )
    )
    model.graph.node[0].name = model.graph.node[2].name = "same"
    model.graph.node[1].name = "own"
    made = after(model.SerializeToString(), "nameUniquely", tmp_path)
    graph = onnx.ModelProto.FromString(made).graph
    names = [node.name for node in graph.node]
    names += [node.name for each in graph.node[3].attribute for node in each.g.node]
    assert names[:2] == ["same", "own"]
    assert all(names)
    assert len(set(names)) == len(names)
    assert [node.output[0] for node in graph.node] == ["a", "b", "d", "y"]


def test_names_that_passes_gave_stay() -> None:
    @passlib.graph_pass(name="renamesFirst", dialects=["onnx"])
    def renames_first(graph: passlib.Graph) -> None:
        first, second = (node for node in graph.sorted() if not node.is_variable)
        first.name = "chosen"
        graph.add_node("Neg", [second.outputs[0]], name="new")

    model = passlib.load(parsed("g (float[N] x) => (float[N] y) { a = Relu(x) y = Relu(a) }"))
    made = model.optimize_for("renamesFirst, nameUniquely, nameUniquely")
    assert {n.name for n in made.symbol.nodes() if n.op != "null"} <= {"chosen", "new", "node_Relu"}
    assert "chosen" in [node.name for node in made.symbol.nodes()]


def test_names_of_mxnet_nodes() -> None:
    x = passlib.sym.var("x")
    inner = passlib.sym.relu(passlib.sym.relu(x, name="a"), name="a")
    symbol = passlib.sym.sigmoid(inner, name="a")
    made = symbol.optimize_for("nameUniquely")
    assert [node.name for node in made.nodes()] == ["x", "a_1", "a_2", "a"]
    assert made.list_outputs() == symbol.list_outputs()
