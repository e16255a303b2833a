"""Passes of users in the bodies of local functions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import passlib as pl
from passlib.library import backends
from rewriting import results

HEADER = '<ir_version: 10, opset_import: ["" : 17, "local" : 1]>\n'
MODEL = """g (float[N, 4] x) => (float[N, 4] y)
{ t = Tanh(x) h = local.Layer(t) y = local.Layer(h) }
<domain: "local", opset_import: ["" : 17]>
Layer (a) => (b) { s = Sigmoid(a) c = Mul(a, s) d = Tanh(c) b = Neg(d) }"""
OUTER = """g (float[N, 4] x) => (float[N, 4] y) { y = local.Outer(x) }
<domain: "local", opset_import: ["" : 17, "local" : 1]>
Outer (a) => (b) { c = Tanh(a) b = local.Layer(c) }
<domain: "local", opset_import: ["" : 17]>
Layer (a) => (b) { s = Sigmoid(a) c = Mul(a, s) d = Tanh(c) b = Neg(d) }"""
REFERRING = """g (float[N, 4] x) => (float[N, 4] y)
{ t = local.Layer<slope = 0.5>(x) y = local.Layer<slope = 0.25>(t) }
<domain: "local", opset_import: ["" : 17]>
Layer <slope> (a) => (b) { c = Tanh(a) b = LeakyRelu<alpha : float = @slope>(c) }"""
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def _library(load_plugin: Callable[[str], Any]) -> None:
    load_plugin("in_functions")


def proto_of(text: str) -> Any:
    return onnx.parser.parse_model(HEADER + text)


def model_of(text: str) -> pl.Model:
    return pl.load(proto_of(text).SerializeToString())


def bodies(model: pl.Model, path: Path) -> dict[str, list[str]]:
    """Return the operators of the functions that a saved model has."""
    model.save(path)
    onnx.checker.check_model(str(path))
    return {each.name: [n.op_type for n in each.node] for each in onnx.load(path).functions}


ENTERED = {
    "a pattern": (MODEL, "swishInFunctions", {"Layer": ["QuickGelu", "Tanh", "Neg"]}),
    "declared": (MODEL, "dropTanhInFunctions", {"Layer": ["Sigmoid", "Mul", "Neg"]}),
    "not declared": (MODEL, "dropTanhOutside", {"Layer": ["Sigmoid", "Mul", "Tanh", "Neg"]}),
    "a pipeline": (
        MODEL, "dropTanhOutside, swishInFunctions, dropTanhInFunctions",
        {"Layer": ["QuickGelu", "Neg"]},
    ),
    "functions in functions": (
        OUTER, "dropTanhInFunctions", {"Outer": ["Layer"], "Layer": ["Sigmoid", "Mul", "Neg"]},
    ),
    "attributes of the call": (REFERRING, "dropTanhInFunctions", {"Layer": ["LeakyRelu"]}),
}  # fmt: skip


@pytest.mark.parametrize("case", ENTERED)
def test_bodies(case: str, tmp_path: Path) -> None:
    text, passes, left = ENTERED[case]
    made = model_of(text).optimize_for(passes)
    assert bodies(made, tmp_path / "m.onnx") == left
    if passes == "swishInFunctions":
        (expected,) = results(proto_of(text).SerializeToString(), {"x": X})
        np.testing.assert_allclose(made.run({"x": X})["y"], expected, rtol=1e-5)


def test_a_new_operator_set_is_the_functions(tmp_path: Path) -> None:
    model_of(MODEL).optimize_for("swishInFunctions").save(tmp_path / "m.onnx")
    (function,) = onnx.load(tmp_path / "m.onnx").functions
    sets = {each.domain: each.version for each in function.opset_import}
    assert sets == {"": 17, "com.microsoft": 1}


BROKEN = {
    "fail": (pl.PassError, "breakBody.*it always fails"),
    "behind": (pl.GraphError, "a pass added a consumer of an output"),
    "output": (pl.GraphError, "a pass removed the output 'b'"),
    "input": (pl.GraphError, "a pass added the input 'added'"),
    "Result9": (pl.GraphError, "a pass added the operator 'Result9' of the domain 'referring'"),
    "Referring9": (
        pl.GraphError,
        "a pass added the operator 'Referring9' of the domain 'referring'",
    ),
    "ResultFoo": (pl.GraphError, "a pass added the operator 'ResultFoo' of the domain 'referring'"),
    "more": (pl.GraphError, "a pass added, removed or moved an output"),
    "set": (pl.GraphError, "a pass changed its operator set '' from version 17 to 18"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_no_body_can_be(how: str) -> None:
    kind, message = BROKEN[how]
    model = model_of(MODEL)
    before = model.symbol.tojson()
    with pytest.raises(kind, match=f"(?s)local function 'Layer': .*{message}"):
        model.optimize_for("breakBody", how=how)
    assert model.symbol.tojson() == before


def test_a_pass_that_joins_simplify_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))

    @pl.graph_pass(joins=pl.passes.Joins(["simplify"]))
    def fail_in_bodies(graph: pl.Graph) -> None:
        if any(node.op == "Sigmoid" for node in graph.nodes):
            raise ValueError("it fails on Sigmoid")

    with pytest.raises(pl.PassError, match=r"local function 'Layer': .*it fails on Sigmoid"):
        model_of(MODEL).simplify()


def test_what_a_library_declares() -> None:
    declared = pl.library.passes()
    assert declared["swishInFunctions"].enters_functions
    assert not declared["dropTanhOutside"].enters_functions
    text = str(declared["dropTanhInFunctions"])
    assert "  also changes the bodies of local functions\n" in text


def test_passes_in_python(tmp_path: Path) -> None:
    """A body has the types of the calls, and a new weight is a constant of the function."""
    seen = []

    @pl.graph_pass(enters_functions=True, shapes=True, replace=True)
    def add_weight(graph: pl.Graph) -> None:
        for node in graph.sorted():
            if node.op == "Neg":
                seen.append(node.inputs[0].shape)
                weight = graph.add_parameter("k", np.full(4, 3, np.float32)).outputs[0]
                graph.set_inputs(node, [graph.add_node("Mul", [node.inputs[0], weight]).outputs[0]])

    made = model_of(MODEL).optimize_for("add_weight")
    assert seen == [(None, 4)]
    operators = ["Constant", "Sigmoid", "Mul", "Tanh", "Mul", "Neg"]
    assert bodies(made, tmp_path / "m.onnx") == {"Layer": operators}
    text = MODEL.replace("b = Neg(d)", "k = Constant<value_float = 3.0>() e = Mul(d, k) b = Neg(e)")
    (expected,) = results(proto_of(text).SerializeToString(), {"x": X})
    np.testing.assert_array_equal(made.run({"x": X})["y"], expected)


def test_a_changed_weight_alone(tmp_path: Path) -> None:
    @pl.graph_pass(enters_functions=True, replace=True)
    def triple(graph: pl.Graph) -> None:
        for name in graph.args:
            graph.args[name] = graph.args[name] * 3

    text = MODEL.replace(
        "b = Neg(d)", "k = Constant<value_floats = [1.0, 2.0, 3.0, 4.0]>() b = Mul(d, k)"
    )
    made = model_of(text).optimize_for("triple")
    expected = text.replace("[1.0, 2.0, 3.0, 4.0]", "[3.0, 6.0, 9.0, 12.0]")
    (want,) = results(proto_of(expected).SerializeToString(), {"x": X})
    np.testing.assert_array_equal(made.run({"x": X})["y"], want)


CLASHES = {
    "a value": "Layer (a) => (b) { bResult = Tanh(a) c = Tanh(bResult) b = Neg(c) }",
    "a result": "Layer (a) => (b, bResult) { c = Tanh(a) bResult = Abs(c) b = Neg(c) }",
}


@pytest.mark.parametrize("case", CLASHES)
def test_names_like_those_of_the_results(case: str, tmp_path: Path) -> None:
    call = "y" if case == "a value" else "y, z"
    text = f"""g (float[2] x) => (float[2] y) {{ {call} = local.Layer(x) }}
<domain: "local", opset_import: ["" : 17]> {CLASHES[case]}"""
    made = model_of(text).optimize_for("dropTanhInFunctions")
    assert "Tanh" not in bodies(made, tmp_path / "m.onnx")["Layer"]
    assert pl.load(tmp_path / "m.onnx").simplify()


def test_constants_in_other_files(tmp_path: Path) -> None:
    text = MODEL.replace(
        "b = Neg(d)", "k = Constant<value = float[4] {1, 2, 3, 4}>() b = Mul(d, k)"
    )
    onnx.save(
        proto_of(text), tmp_path / "m.onnx", save_as_external_data=True, location="m.data",
        size_threshold=0, convert_attribute=True,
    )  # fmt: skip
    model = pl.load(tmp_path / "m.onnx")
    for passes, left in (
        ("dropTanhInFunctions", ["Constant", "Mul", "Mul", "Sigmoid"]),
        ("simplify", ["Constant", "Mul", "Mul", "Sigmoid", "Tanh"]),
    ):
        made = model.optimize_for(passes)
        assert sorted(bodies(made, tmp_path / "made.onnx")["Layer"]) == left
    (want,) = results(proto_of(text).SerializeToString(), {"x": X})
    np.testing.assert_allclose(made.run({"x": X})["y"], want, rtol=1e-6)


def test_operator_sets_that_the_model_has(tmp_path: Path) -> None:
    """A function gets the model's version of a set that it lacks."""
    text = """g (float[2] x) => (float[2] y) { y = local.Outer(x) }
<domain: "local", opset_import: ["local" : 1]> Outer (a) => (b) { b = local.Inner(a) }
<domain: "local", opset_import: ["" : 17]> Inner (a) => (b) { b = Neg(a) }"""

    @pl.graph_pass(enters_functions=True, replace=True)
    def add_reduction(graph: pl.Graph) -> None:
        for node in graph.sorted():
            if node.op == "Inner":
                attrs = {"axes": "[0]", "keepdims": "1"}
                largest = graph.add_node("ReduceMax", [node.inputs[0]], attrs).outputs[0]
                graph.set_inputs(node, [largest])

    made = model_of(text).optimize_for("add_reduction")
    assert bodies(made, tmp_path / "m.onnx")["Outer"] == ["ReduceMax", "Inner"]
    function = next(f for f in onnx.load(tmp_path / "m.onnx").functions if f.name == "Outer")
    assert {each.domain: each.version for each in function.opset_import} == {"": 17, "local": 1}


def test_stated_types_behind_outputs_that_change(tmp_path: Path) -> None:
    text = """g (float[2] x) => (double[2] y, double[2] z) { y, z = local.Layer(x) }
<domain: "local", opset_import: ["" : 17]>
Layer (a) => (b, c) <float[2] d, float[2] b> { b = Neg(a) d = Abs(b) c = Sqrt(d) }"""

    @pl.graph_pass(enters_functions=True, replace=True)
    def widen(graph: pl.Graph) -> None:
        for node in graph.sorted():
            if node.op == "Neg":
                wide = graph.add_node("Cast", [node.inputs[0]], {"to": "11"}).outputs[0]
                graph.set_inputs(node, [wide])

    model_of(text).optimize_for("widen").save(tmp_path / "m.onnx")
    (function,) = onnx.load(tmp_path / "m.onnx").functions
    assert [node.op_type for node in function.node] == ["Cast", "Neg", "Abs", "Sqrt"]
    assert not function.value_info


def test_an_input_with_a_value() -> None:
    @pl.graph_pass(enters_functions=True, replace=True)
    def fill(graph: pl.Graph) -> None:
        if any(node.op == "Result0" for node in graph.nodes):
            graph.args["a"] = np.zeros((1, 4), np.float32)

    with pytest.raises(pl.GraphError, match="'Layer': a pass gave the input 'a' a value"):
        model_of(MODEL).optimize_for("fill")


def test_patterns_in_python(tmp_path: Path) -> None:
    @pl.rewrite("y = Mul(x, Sigmoid(x))", replace=True)
    def swish_here(m: pl.Match) -> object:
        return m.op("QuickGelu", m.x, __domain__="com.microsoft", alpha="1.0")

    made = model_of(MODEL).optimize_for("swish_here")
    assert bodies(made, tmp_path / "m.onnx") == {"Layer": ["QuickGelu", "Tanh", "Neg"]}


def test_operators_of_libraries_in_bodies(load_plugin: Callable[[str], Any]) -> None:
    """Runtimes infer no types of them in functions."""
    load_plugin("graph_operators")

    @pl.graph_pass(enters_functions=True, replace=True)
    def scaled(graph: pl.Graph) -> None:
        for node in graph.nodes:
            if node.op == "Neg":
                node.op = "tp_scale"

    model = model_of(MODEL)
    with pytest.raises(pl.GraphError, match=r"'Layer': .* inlineFunctions before the pass"):
        model.optimize_for("scaled")
    made = model.optimize_for(["inlineFunctions", "scaled"])
    expected = MODEL.replace("b = Neg(d)", "b = Add(d, d)")
    (want,) = results(proto_of(expected).SerializeToString(), {"x": X})
    np.testing.assert_array_equal(made.run({"x": X})["y"], want)
