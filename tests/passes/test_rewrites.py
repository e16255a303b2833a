"""Replacements of patterns, in C++ and in Python: each kind of binding, and where none matches."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from rewrite_rules import NAMES

LoadPlugin = Callable[[str], passlib.library.Library]
WEIGHTS = {name: np.full((3, 3), 0.5, np.float32) for name in "vw"}

pytestmark = pytest.mark.usefixtures("rewrites")


@pytest.fixture(scope="module")
def rewrites(load_plugin: LoadPlugin) -> None:
    load_plugin("rewrites")


@pytest.fixture(params=["C++", "Python"])
def named(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Return the name of a pass in one of the languages, by that in C++."""
    return (lambda name: name) if request.param == "C++" else NAMES.__getitem__


def name_after_outputs(message: onnx.ModelProto) -> None:
    """Name each node of a model and its nested graphs after its first output."""
    pending = [message.graph]
    for graph in pending:
        for node in graph.node:
            node.name = node.output[0]
            pending += [field.g for field in node.attribute if field.HasField("g")]


def load(nodes: str, outputs: str = "y") -> passlib.Model:
    """A model of ONNX's textual nodes, each named after its first output."""
    results = ", ".join(f"float[3, 3] {name}" for name in outputs.split())
    head = '<ir_version: 9, opset_import: ["" : 20, "my" : 1]> g (float[3, 3] x, bool c)'
    message = onnx.parser.parse_model(f"{head} => ({results}) {{ {nodes} }}")
    name_after_outputs(message)
    used = {name for node in message.graph.node for name in node.input}
    message.graph.initializer.extend(
        onnx.numpy_helper.from_array(array, name) for name, array in WEIGHTS.items() if name in used
    )
    return passlib.load(message)


def shown(model: passlib.Model) -> list[str]:
    """Each operation as text: operator, inputs, name."""
    lines = []
    for node in model.symbol.nodes():
        if node.op == "null":
            continue
        names = (
            ""
            if entry.node.name == "__absent__"
            else f"{entry.node.name}:{entry.index}".removesuffix(":0")
            for entry in node.inputs
        )
        lines.append(f"{node.name} = {node.op}({', '.join(names)})")
    return lines


REPLACED: dict[str, tuple[str, str, list[str]]] = {
    "matches that follow each other": (
        "idempotentInC",
        "a = Relu(x) b = Relu(a) d = Relu(b) e = Relu(d) y = Neg(e)",
        ["a = Relu(x)", "y = Neg(a)"],
    ),
    "matches that share an operation": (
        "idempotentInC",
        "a = Abs(x) b = Abs(a) d = Abs(a) y = Add(b, d)",
        ["a = Abs(x)", "y = Add(a, a)"],
    ),
    "alternatives": (
        "invertedInC",
        "a = Neg(x) b = Tanh(a) d = Neg(b) y = Sigmoid(d)",
        ["b = InvertedTanh(x)", "y = InvertedSigmoid(b)"],
    ),
    "variadic inputs": (
        "flattenConcatInC",
        "a = Concat<axis = 0>(x, v) b = Concat<axis = 0>(w, a) y = Concat<axis = 0>(x, x, b)",
        ["y = Concat(x, x, w, x, v)"],
    ),
    "attributes that differ": (
        "flattenConcatInC",
        "a = Concat<axis = 0>(x, v) y = Concat<axis = 1>(w, a)",
        ["a = Concat(x, v)", "y = Concat(w, a)"],
    ),
    "an optional input that is there": (
        "convReluInC", "a = Conv<group = 1>(x, v, w) y = Relu(a)", ["y = ConvRelu(x, v, w)"]
    ),
    "an optional input that is absent": (
        "convReluInC", "a = Conv<group = 1>(x, v) y = Relu(a)", ["y = ConvRelu(x, v)"]
    ),
    "an optional input before others that is absent": (
        "clipBelowInC", "a = Neg(x) y = Clip(a, , v)", ["y = ClipNeg(x, , v)"]
    ),
    "a condition that is not met": (
        "clipBelowInC", "a = Neg(x) y = Clip(a, v, w)", ["a = Neg(x)", "y = Clip(a, v, w)"]
    ),
    "several results": (
        "pairProductsInC",
        "a = MatMul(x, v) b = MatMul(x, w) y = Add(a, b)",
        ["a = Pair(x, v, w)", "y = Add(a, a:1)"],
    ),
    "a result that depends on another": (
        "pairProductsInC",
        "a = MatMul(x, v) b = MatMul(a, w) y = Add(a, b)",
        ["a = MatMul(x, v)", "b = MatMul(a, w)", "y = Add(a, b)"],
    ),
    "several outputs": (
        "swapHalvesInC",
        "a, b = Split<num_outputs = 2>(x) y = Sub(a, b)",
        [
            "a_halves = Halves(x)", "a = Neg(a_halves)", "a_neg = Neg(a_halves:1)",
            "y = Sub(a, a_neg)",
        ],
    ),
    "a number that becomes an attribute": (
        "scaleInC", "h = Constant<value_float = 0.5>() y = Mul(h, x)", ["y = Scale(x)"]
    ),
    "a factor that is not known": ("scaleInC", "y = Mul(x, v)", ["y = Mul(x, v)"]),
    "an inner result that others use": (
        "invertedInC",
        "a = Neg(x) b = Tanh(a) y = Add(a, b)",
        ["a = Neg(x)", "b = Tanh(a)", "y = Add(a, b)"],
    ),
}  # fmt: skip


@pytest.mark.usefixtures("handover")
@pytest.mark.parametrize("title", REPLACED)
def test_what_a_match_becomes(title: str, named: Callable[[str], str]) -> None:
    name, nodes, expected = REPLACED[title]
    after = load(nodes).optimize_for(named(name), skip_infer=True)
    assert sorted(shown(after)) == sorted(expected)


def test_inner_results_that_are_outputs_stay(named: Callable[[str], str]) -> None:
    model = load("a = Neg(x) y = Tanh(a)", "y a")
    assert shown(model.optimize_for(named("invertedInC"))) == ["a = Neg(x)", "y = Tanh(a)"]


def test_attributes_are_bound_and_spread(named: Callable[[str], str]) -> None:
    model = load(
        "a = Conv<group = 1, strides = [2, 1]>(x, v) b = Relu(a)"
        "h = Constant<value_float = 0.5>() y = Mul(b, h)"
    )
    for name in ("convReluInC", "scaleInC"):
        model = model.optimize_for(named(name), skip_infer=True)
    fused, scaled = (node.attrs for node in model.symbol.nodes() if node.op != "null")
    assert {key: fused[key] for key in ("group", "strides", "relu", "__domain__")} == {
        "group": "1", "strides": "[2, 1]", "relu": "1", "__domain__": "my"
    }  # fmt: skip
    assert scaled["by"] == "0.5"


@pytest.mark.parametrize("name", ["endlessInC", "growingInC"])
def test_replacing_without_end_is_an_error(name: str, named: Callable[[str], str]) -> None:
    model = load("y = Relu(x)")
    message = r"replacing 'y = Relu\(x\)' does not end, after \d+ replacements: what replaces it"
    with pytest.raises(passlib.PassError, match=message):
        model.optimize_for(named(name))
    assert shown(model) == ["y = Relu(x)"]


NESTED = """
y = If(c) <
    then_branch = inner () => (float[3, 3] t) { a = Neg(x) b = Abs(a) d = Abs(b) t = Tanh(d) },
    else_branch = other () => (float[3, 3] e) { f = Neg(x) e = Tanh(f) }>
"""


def test_nested_graphs(named: Callable[[str], str]) -> None:
    model = load(NESTED)
    for name in ("invertedInC", "idempotentInC"):
        model = model.optimize_for(named(name), skip_infer=True)
    (branching,) = (node for node in model.symbol.nodes() if node.op == "If")
    inside = [
        [(node.op, node.name) for node in graph.nodes() if node.op != "null"]
        for graph in branching.subgraphs
    ]
    assert inside == [[("Neg", "a"), ("Abs", "b"), ("Tanh", "t")], [("InvertedTanh", "e")]]


def test_nested_graphs_are_searched_and_explained() -> None:
    model = load(NESTED)
    assert [found.nodes for found in passlib.find(model, "Tanh(Neg(x))")] == [("f", "e")]
    assert passlib.why(model, "Tanh(Neg(x))", "e") is None
    assert passlib.why(model, "Tanh(Neg(x))", "t") == "Neg is needed, and this is 'd' (Abs)"
    with pytest.raises(passlib.GraphError, match="no node 'nowhere'"):
        passlib.why(model, "Tanh(Neg(x))", "nowhere")


CAPTURING = """
<ir_version: 9, opset_import: ["" : 20]>
g (float[2, 3] x, bool c) => (float[2, 3] y, float[2, 3] z)
<float two = {2.0}, float twenty = {20.0}, float[3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}>
{
    k = Constant<value = float {4.0}>()
    z = MatMul(x, w)
    y = If(c) <
        then_branch = outside () => (float[2, 3] t) {
            a = Mul(x, two)
            b = MatMul(a, w)
            t = If(c) <
                then_branch = inside () => (float[2, 3] u) {
                    d = Mul(k, b)
                    u = MatMul(d, w) },
                else_branch = beside () => (float[2, 3] v) { v = Identity(b) }>
        },
        else_branch = other () => (float[2, 3] e) {
            f = Mul(x, twenty)
            e = MatMul(f, w) }>
}
"""


@pytest.mark.parametrize(
    ("pattern", "nodes"),
    [
        ("MatMul(_, w:param[rank=2])", [("z",), ("b",), ("u",), ("e",)]),
        ("Mul(x, 2)", [("a",)]),
        ("Mul(b, 4)", [("d",)]),
        ("Mul(_, _:param[type=float32, rank=0])", [("a",), ("d",), ("f",)]),
        ("Mul(x:param, _)", [("a",), ("d",), ("f",)]),
        ("MatMul(x:param, _)", []),
        ("MatMul(x:input, _)", [("z",)]),
    ],
)
def test_parameters_of_graphs_around(pattern: str, nodes: list[tuple[str]]) -> None:
    message = onnx.parser.parse_model(CAPTURING)
    name_after_outputs(message)
    found = passlib.find(passlib.load(message), pattern)
    assert sorted(each.nodes[-1:] for each in found) == sorted(nodes)


@pytest.mark.parametrize(("below", "left"), [(3, 2), (10, 1), (100, 0)])
def test_new_parameters_for_nested_graphs(
    below: float, left: int, named: Callable[[str], str], tmp_path: Path
) -> None:
    """The model gets the parameter, and the graphs between take it from around them."""
    model = passlib.load(onnx.parser.parse_model(CAPTURING))
    changed = model.optimize_for(named("foldFactorInC"), below=below)
    made = set(changed.args) - set(model.args)
    assert len(made) == 3 - left
    assert all("_scaled" in name for name in made)
    changed.save(tmp_path / "changed.onnx")
    onnx.checker.check_model(tmp_path / "changed.onnx", full_check=True)
    again = passlib.load(tmp_path / "changed.onnx")
    assert len(passlib.find(again, "Mul(_, _:param)")) == left
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for c in (False, True):
        feeds = {"x": x, "c": np.array(c)}
        for name, array in model.run(feeds).items():
            np.testing.assert_allclose(again.run(feeds)[name].asnumpy(), array.asnumpy())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bellow": 1}, "has no option 'bellow'.*did you mean 'below'"),
        ({"below": "much"}, "below"),
    ],
)
def test_options_of_patterns_are_checked(
    options: dict[str, Any], message: str, named: Callable[[str], str]
) -> None:
    with pytest.raises(passlib.PasslibError, match=message):
        load("y = Relu(x)").optimize_for(named("foldFactorInC"), **options)


def test_options_of_patterns_are_declared() -> None:
    declared = passlib.library.passes()["foldFactorInC"]
    assert [(each.name, each.default) for each in declared.options] == [
        ("below", 10.0),
        ("by", "scaled"),
    ]
    with pytest.raises(passlib.PasslibError, match="below"):
        load("y = Relu(x)").optimize_for("foldFactorInC", below=101)


def test_nodes_with_control_dependencies_are_left_alone() -> None:
    @passlib.rewrite("y = relu(relu(x))", replace=True)
    def merge_waiting(m: passlib.Match) -> Any:
        return m.op("relu", m.x)

    nodes: list[dict[str, Any]] = [
        {"op": "null", "name": "x", "inputs": []},
        {"op": "relu", "name": "a", "inputs": [[0, 0, 0]]},
        {"op": "relu", "name": "b", "inputs": [[1, 0, 0]]},
        {"op": "relu", "name": "y", "inputs": [[2, 0, 0]]},
        {"op": "exp", "name": "z", "inputs": [[3, 0, 0]]},
    ]
    for waiting in (None, "b"):
        if waiting:
            nodes[2]["control_deps"] = [0]
        graph = {"nodes": nodes, "arg_nodes": [0], "heads": [[4, 0, 0]]}
        symbol = passlib.sym.load_json(json.dumps(graph))
        after = symbol.optimize_for("merge_waiting")
        names = [node.name for node in after.nodes() if node.op == "relu"]
        assert names == (["y"] if waiting is None else ["a", "b", "y"])
        if waiting:
            reason = passlib.why(symbol, "relu(relu(x))", "y")
            assert reason == "'b' (relu) has control dependencies"


def test_data_among_the_arrays_is_no_parameter() -> None:
    """Arrays of a caller's data are in args too; they change with every batch."""
    x = passlib.sym.var("x")
    product = passlib.sym.FullyConnected(x, num_hidden=3, no_bias=True, name="fc")
    model = passlib.Model(product, {"x": WEIGHTS["v"], "fc_weight": WEIGHTS["w"]})
    assert passlib.find(model, "FullyConnected(x, w:param)") != []
    assert passlib.find(model, "FullyConnected(x:param, w)") == []


def test_a_parameter_that_replaces_an_operation_keeps_its_array() -> None:
    @passlib.rewrite(["y = Relu(x)", "y = relu(x)"], replace=True)
    def relu_to_ones(m: passlib.Match) -> Any:
        """Replaces a Relu by ones."""
        return m.parameter("ones", np.ones(2, np.float32))

    relu = passlib.sym.relu(passlib.sym.var("x"), name="r")
    made = passlib.Model(passlib.sym.exp(relu, name="e"), {}).optimize_for("relu_to_ones")
    assert list(made.args) == made.symbol.list_inputs() == ["r_ones"]
    assert made.args["r_ones"].tolist() == [1, 1]
    kept = passlib.Model(relu, {}).optimize_for("relu_to_ones")  # MXNet names outputs after nodes
    assert (kept.symbol.list_outputs(), dict(kept.args)) == (["r_output"], {})
    for text in ("r = Relu(x) y = Exp(r)", "y = Relu(x)"):
        made = load(text).optimize_for("relu_to_ones")
        assert [array.tolist() for array in made.args.values()] == [[1, 1]]
        assert made.symbol.list_outputs() == ["y"]
        want = np.exp([1, 1]) if "Exp" in text else [1, 1]
        np.testing.assert_allclose(
            made.run({"x": WEIGHTS["v"], "c": np.array(True)})["y"], want, rtol=1e-6
        )


@pytest.mark.parametrize(
    ("name", "options", "kind", "message"),
    [
        ("scaleInC", {"by": 2}, passlib.PasslibError, r"has no option 'by' \(it has none\)"),
        ("scale", {"by": 2}, passlib.PasslibError, r"has no option 'by' \(it has none\)"),
    ],
)
def test_options_that_are_not_declared(
    name: str, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        load("y = Relu(x)").optimize_for(name, **options)


def test_options_of_rules() -> None:
    @passlib.rewrite("y = Relu(x)", replace=True)
    def renamed(m: passlib.Match, *, op: str, axis: int | None = None) -> Any:
        """Makes another operator."""
        return m.op(op, m.x) if axis is None else m.op(op, m.x, axis=axis)

    model = load("y = Relu(x)")
    with pytest.raises(passlib.PasslibError, match="needs the option 'op': text"):
        model.optimize_for("renamed")
    assert shown(model.optimize_for("renamed", op="Abs")) == ["y = Abs(x)"]
    (made,) = (
        n
        for n in model.optimize_for("renamed{op=Softmax, axis=0}").symbol.nodes()
        if n.op != "null"
    )
    assert (made.op, made.attrs["axis"]) == ("Softmax", "0")


def test_what_pattern_passes_declare() -> None:
    passes = passlib.library.passes()
    assert str(passes["convReluInC"]).splitlines()[:2] == [
        "convReluInC: Relu behind Conv, which may have a bias", "  dialects: onnx"
    ]  # fmt: skip
    assert passes["convReluInC"].options == ()
    assert passes["conv_relu"].description == "Merges Relu into Conv, which may have a bias."
    # Shapes are inferred for passes with functions, which may look at them, and no others.
    assert passes["clipBelowInC"].needs_shapes
    assert not passes["convReluInC"].needs_shapes
    with pytest.raises(
        passlib.UnsupportedError, match="is for models of onnx, and this one is of mxnet"
    ):
        passlib.sym.relu(passlib.sym.var("x")).optimize_for("convReluInC")
