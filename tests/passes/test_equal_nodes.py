"""The standard pass mergeEqualNodes: what it merges in each dialect, and what it must not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import passlib
from dlprim_files import NETWORKS, load, network, operator, same_results, with_weights
from nnvm_files import DATA as NNVM_DATA
from nnvm_files import OWN, TVM_EXECUTOR, text_of
from onnx_models import save as save_onnx
from passlib import sym
from passlib.dialects.mxnet import schema
from passlib.dialects.nnvm.lowering import load_table as load_nnvm_table
from passlib.dialects.nnvm.lowering.table import table as nnvm_table
from passlib.library.registry import find_operator
from passlib.model import Model
from passlib.symbol import Symbol
from plugin_build import ROOT

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("handover")


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    passlib.library.load_standard()


def operators(model: Model | Symbol) -> Counter[str]:
    symbol = model.symbol if isinstance(model, Model) else model
    return Counter(node.op for node in symbol.nodes() if node.op != "null")


# Which operators of MXNet and NNVM are taken to be functions of their inputs.

IMPURE = re.compile(
    r"update|^_random_(?!pdf)|^_sample_|_image_random_|uniform_sample$|_shuffle$"
    r"|^_npi_(bernoulli|choice|exponential|gamma|gumbel|logistic|multinomial|normal|normal_n"
    r"|pareto|random_randint|rayleigh|uniform|uniform_n|weibull)$"
    r"|^_(cond|foreach|while_loop|copyto|CrossDeviceCopy|NoGradient|set_value|cvimread|sg_.*)$"
    r"|^(Custom|Dropout|RNN|LeakyReLU|multi_lars|reset_arrays)$"
)


def listed(name: str) -> set[str]:
    source = (ROOT / "cpp/passes/known_operators.cc").read_text("utf-8")
    found = re.search(rf'{name}\[\] = R"names\((.*?)\)names"', source, re.S)
    assert found is not None
    return set(found[1].split())


def test_known_operators_are_those_of_the_registry() -> None:
    expected = set()
    for name in schema.names():
        operator = schema.find(name)
        assert operator is not None
        if find_operator(operator.name) is not None:
            continue  # of a library that another test loaded
        names = (operator.name, *operator.aliases)
        if not operator.mutable_inputs() and not any(map(IMPURE.search, names)):
            expected.update(names)
    assert listed("kMXNet") == expected
    assert listed("kRandom").isdisjoint(expected)
    assert listed("kRandom") <= set(schema.names())
    load_nnvm_table()
    own = {name for name in nnvm_table.operators() if name not in expected}
    assert own - {"batch_norm", "dropout", "tvm_op"} == listed("kNNVM")


# MXNet.


def twice(x: Symbol, make: Callable[..., Symbol], **attrs: Any) -> Symbol:
    return make(x, name="a", **attrs) + make(x, name="b", **attrs)


def with_shared_parameters(
    x: Symbol, make: Callable[..., Symbol], names: tuple[str, ...], **attrs: Any
) -> Any:
    shared = {name: sym.var(name) for name in names}
    return make(x, name="a", **attrs, **shared) + make(x, name="b", **attrs, **shared)


STATES = ("gamma", "beta", "moving_mean", "moving_var")
MXNET: dict[str, tuple[Callable[[Symbol], Symbol], dict[str, Any], int]] = {
    "a function": (lambda x: twice(x, sym.relu), {}, 1),
    "attributes": (lambda x: twice(x, sym.clip, a_min=0.0, a_max=1.0), {}, 1),
    "other attributes": (
        lambda x: sym.clip(x, a_min=0.0, a_max=1.0) + sym.clip(x, a_min=0.0, a_max=2.0),
        {},
        0,
    ),
    "other inputs": (lambda x: sym.relu(x) + sym.relu(sym.var("other")), {}, 0),
    "order of inputs": (
        lambda x: (x - sym.exp(x)) * (sym.exp(x) - x), {}, 1,
    ),
    "down the graph": (lambda x: sym.exp(twice(x, sym.tanh)) + sym.exp(twice(x, sym.tanh)), {}, 5),
    "other outputs": (
        lambda x: sym.relu(sym.split(x, num_outputs=3, name="s")[0])
        + sym.relu(sym.split(x, num_outputs=3, name="t")[1]),
        {},
        1,
    ),
    "same outputs": (
        lambda x: sym.relu(sym.split(x, num_outputs=3, name="s")[1])
        + sym.relu(sym.split(x, num_outputs=3, name="t")[1]),
        {},
        2,
    ),
    "an output keeps its name": (lambda x: sym.Group([sym.relu(x, name="a"), x + 1, sym.exp(
        sym.relu(x, name="b"))]), {}, 1),
    "a later output does the work": (
        lambda x: sym.Group([sym.exp(sym.relu(x, name="a")), sym.relu(x, name="b")]),
        {},
        1,
    ),
    "two outputs": (lambda x: sym.Group([sym.relu(x, name="a"), sym.relu(x, name="b")]), {}, 0),
    "dropout": (lambda x: twice(x, sym.Dropout), {}, 0),
    "dropout, for inference": (lambda x: twice(x, sym.Dropout), {"inference": 1}, 1),
    "dropout, always": (lambda x: twice(x, sym.Dropout, mode="always"), {"inference": 1}, 0),
    "random numbers": (
        lambda x: sym.random.uniform(shape=(2, 3)) + sym.random.uniform(shape=(2, 3)),
        {"inference": 1},
        0,
    ),
    "zeros": (lambda x: sym.zeros((2, 3)) + sym.zeros((2, 3)), {}, 1),
    "random slope": (
        lambda x: sym.LeakyReLU(x, act_type="rrelu", name="a")[0]
        + sym.LeakyReLU(x, act_type="rrelu", name="b")[0],
        {},
        0,
    ),
    "slope": (
        lambda x: sym.LeakyReLU(x, slope=0.1, name="a")[0]
        + sym.LeakyReLU(x, slope=0.1, name="b")[0],
        {},
        1,
    ),
    "layer": (
        lambda x: with_shared_parameters(x, sym.FullyConnected, ("weight", "bias"), num_hidden=4),
        {},
        1,
    ),
    "own weights": (
        lambda x: sym.FullyConnected(x, num_hidden=4, name="a")
        + sym.FullyConnected(x, num_hidden=4, name="b"),
        {},
        0,
    ),
    "statistics": (lambda x: with_shared_parameters(x, sym.BatchNorm, STATES), {}, 0),
    "statistics, for inference": (
        lambda x: with_shared_parameters(x, sym.BatchNorm, STATES),
        {"inference": True},
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MXNET)
def test_mxnet(case: str) -> None:
    build, options, merged = MXNET[case]
    symbol = build(sym.var("data", shape=(2, 3)))
    result = symbol.optimize_for(MERGE, **options)
    assert operators(symbol).total() - operators(result).total() == merged
    assert result.list_outputs() == symbol.list_outputs()
    assert set(result.list_inputs()) == set(symbol.list_inputs())
    if not merged:
        assert result.tojson() == symbol.tojson()


def test_unknown_operators_are_not_merged() -> None:
    text = twice(sym.var("data"), sym.relu).tojson().replace('"relu"', '"my_relu"')
    symbol = sym.load_json(text)
    assert operators(symbol.optimize_for(MERGE, inference=1))["my_relu"] == 2


@pytest.mark.parametrize("waiting", ["a", "b"])
def test_nodes_that_wait_stay(waiting: str) -> None:
    graph = json.loads(twice(sym.var("data"), sym.relu).tojson())
    position = {node["name"]: i for i, node in enumerate(graph["nodes"])}
    graph["nodes"][position[waiting]]["control_deps"] = [position["data"]]
    symbol = sym.load_json(json.dumps(graph))
    assert operators(symbol.optimize_for(MERGE))["relu"] == 2


def test_equal_weights() -> None:
    symbol = twice(sym.var("data"), sym.FullyConnected, num_hidden=2)
    random = np.random.default_rng(0)
    weight, bias = random.normal(size=(2, 3)), random.normal(size=2)
    args = {
        "a_weight": weight.astype("f4"),
        "b_weight": weight.astype("f4"),
        "a_bias": bias.astype("f4"),
        "b_bias": bias.astype("f4"),
    }
    model = Model(symbol, args)
    data = random.normal(size=(4, 3)).astype("f4")
    assert len(model.optimize_for(MERGE).args) == 4
    merged = model.optimize_for(MERGE, parameters=True)
    assert len(merged.args) == 2
    assert operators(merged)["FullyConnected"] == 1
    np.testing.assert_allclose(np.asarray(merged(data)), np.asarray(model(data)), rtol=1e-6)
    for other in (args["b_bias"] + 1, args["b_bias"].astype("f8"), args["b_bias"][:, None]):
        changed = Model(symbol, {**args, "b_bias": other})
        result = changed.optimize_for(MERGE, parameters=True, skip_infer=True)
        assert {"a_bias", "b_bias"} < {*result.args}
        assert len(result.args) == 3


def test_states_are_not_merged() -> None:
    symbol = twice(sym.var("data"), sym.BatchNorm)
    states = {f"{n}_moving_{part}": np.ones(3, "f4") for n in "ab" for part in ("mean", "var")}
    args = {f"{n}_{part}": np.ones(3, "f4") for n in "ab" for part in ("gamma", "beta")}
    merged = Model(symbol, args, states).optimize_for(MERGE, parameters=1)
    assert sorted(merged.aux) == sorted(states)
    assert len(merged.args) == 1, "gamma and beta are all ones"


# ONNX.

ONNX: dict[str, tuple[str, dict[str, Any], int]] = {
    "a function": ("a = Relu(x) b = Relu(x) y = Add(a, b)", {}, 1),
    "down the graph": (
        "a = Relu(x) b = Relu(x) p = Exp(a) q = Exp(b) y = Add(p, q)",
        {},
        2,
    ),
    "attributes": (
        "a = LeakyRelu<alpha = 0.25>(x) b = LeakyRelu<alpha = 0.5>(x) y = Add(a, b)",
        {},
        0,
    ),
    "a second output": (
        "a, i = TopK(x, one) b, j = TopK(x, one) p = Cast<to = 1>(j) y = Add(a, p)",
        {},
        1,
    ),
    "random": (
        "a = RandomNormalLike(x) b = RandomNormalLike(x) y = Add(a, b)",
        {"inference": 1},
        0,
    ),
    "bernoulli": ("a = Bernoulli(x) b = Bernoulli(x) y = Add(a, b)", {}, 0),
    "dropout": ("a = Dropout(x) b = Dropout(x) y = Add(a, b)", {}, 0),
    "another domain": ("a = my.Work(x) b = my.Work(x) y = Add(a, b)", {}, 0),
    "an output": ("y = Relu(x) b = Relu(x) z = Exp(b)", {}, 1),
    "a later output": ("b = Relu(x) z = Exp(b) y = Relu(x)", {}, 1),
    "two outputs": ("y = Relu(x) z = Relu(x)", {}, 0),
    "parameters": ("a = Add(x, v) b = Add(x, w) y = Mul(a, b)", {}, 0),
    "equal parameters": ("a = Add(x, v) b = Add(x, w) y = Mul(a, b)", {"parameters": 1}, 1),
    "inside a body": (
        (
            "y = If(c) <then_branch = t () => (r) { p = Relu(x) q = Relu(x) r = Add(p, q) },"
            " else_branch = e () => (s) { s = Exp(x) }>"
        ),
        {},
        1,
    ),
    "equal bodies": (
        (
            "a = If(c) <then_branch = t () => (r) { r = Relu(x) }, "
            "else_branch = e () => (s) { s = Exp(x) }>"
            "b = If(c) <then_branch = t () => (r) { r = Relu(x) }, "
            "else_branch = e () => (s) { s = Exp(x) }> y = Add(a, b)"
        ),
        {},
        0,
    ),
    "captured by a body": (
        (
            "a = Tanh(x) b = Tanh(x) y = If(c) <then_branch = t () => (r) { r = Add(a, b) },"
            " else_branch = e () => (s) { s = Exp(b) }>"
        ),
        {},
        1,
    ),
}


def all_nodes(graph: onnx.GraphProto) -> int:
    """Count the nodes of a graph and of its bodies."""
    inner = sum(all_nodes(a.g) for node in graph.node for a in node.attribute if a.HasField("g"))
    return len(graph.node) + inner


@pytest.mark.parametrize("case", ONNX)
def test_onnx(case: str, tmp_path: Path) -> None:
    body, options, merged = ONNX[case]
    outputs = "float[N, 4] y" + (", float[N, 4] z" if "z =" in body else "")
    text = (
        '<ir_version: 8, opset_import: ["" : 17, "my" : 1]> '
        f"g (float[N, 4] x, bool c) => ({outputs}) "
        "<float[4] v = {1.0, 2.0, 3.0, 4.0}, float[4] w = {1.0, 2.0, 3.0, 4.0}, "
        "int64[1] one = {4}> { " + body + " }"
    )
    text += (
        ' <domain: "my", opset_import: ["" : 17]> Work (p) => (q) { q = Relu(p) }'
        if "my." in body
        else ""
    )
    path, saved = save_onnx(text, tmp_path / "m.onnx"), tmp_path / "out.onnx"
    model = passlib.load(path)
    result = model.optimize_for(MERGE, **options)
    result.save(saved)
    onnx.checker.check_model(onnx.load(saved), full_check=True)
    assert all_nodes(onnx.load(path).graph) - all_nodes(onnx.load(saved).graph) == merged
    assert result.outputs == model.outputs
    if not merged:
        assert onnx.load(saved) == onnx.load(path)
    if "Random" in body or "Bernoulli" in body:
        return
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        expected, found = model.run(feeds), passlib.load(saved).run(feeds)
        for name, array in expected.items():
            np.testing.assert_allclose(np.asarray(found[name]), np.asarray(array), rtol=1e-6)


UNARY = ("Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Identity")
BINARY = ("Add", "Mul", "Sub", "Max")


@st.composite
def expressions(draw: st.DrawFn) -> tuple[list[tuple[str, tuple[int, ...]]], list[int]]:
    """Operators with the values that they take, value 0 being the input; and the outputs."""
    nodes: list[tuple[str, tuple[int, ...]]] = []
    for position in range(draw(st.integers(1, 25))):
        older = st.integers(max(0, position - 6), position)
        if draw(st.booleans()):
            nodes.append((draw(st.sampled_from(UNARY)), (draw(older),)))
        else:
            nodes.append((draw(st.sampled_from(BINARY)), (draw(older), draw(older))))
        if draw(st.booleans()):
            nodes.append(nodes[-1])  # a duplicate at once
    heads = draw(st.lists(st.integers(1, len(nodes)), min_size=1, max_size=3, unique=True))
    return nodes, heads


def distinct(nodes: list[tuple[str, tuple[int, ...]]], heads: list[int]) -> int:
    """Count what must be left: values that differ and are needed, outputs one by one."""
    number: dict[Any, int] = {}
    value = [0]
    for op, inputs in nodes:
        key = op, tuple(value[i] for i in inputs)
        value.append(number.setdefault(key, len(number) + 1))
    needed: set[int] = set()
    pending = list(heads)
    while pending:
        position = pending.pop()
        if position and position not in needed:
            needed.add(position)
            pending += nodes[position - 1][1]
    classes = {value[position] for position in needed}
    return len(classes) + len(heads) - len({value[position] for position in heads})


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
@given(graph=expressions(), merge_first=st.booleans())
def test_planted_duplicates_and_dead_nodes(
    graph: tuple[list[tuple[str, tuple[int, ...]]], list[int]],
    merge_first: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    nodes, heads = graph
    protos = [
        helper.make_node(op, [f"v{i}" for i in inputs], [f"v{position}"], name=f"n{position}")
        for position, (op, inputs) in enumerate(nodes, 1)
    ]
    made = helper.make_graph(
        [helper.make_node("Mul", ["x", "w"], ["v0"]), *protos],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [3])],
        [helper.make_tensor_value_info(f"v{i}", onnx.TensorProto.FLOAT, [3]) for i in heads],
        [numpy_helper.from_array(np.float32([0.5, -0.25, 1.5]), name) for name in ("w", "unused")],
    )
    imports = [helper.make_opsetid("", 17)]
    folder = tmp_path_factory.mktemp("planted")
    onnx.save(helper.make_model(made, opset_imports=imports, ir_version=8), folder / "m.onnx")
    model = passlib.load(folder / "m.onnx")
    names = (MERGE, "removeDeadNodes") if merge_first else ("removeDeadNodes", MERGE)
    result = model
    for name in names:
        result = result.optimize_for(name, skip_infer=True)
    result.save(folder / "out.onnx")
    saved = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(saved, full_check=True)
    reached = any(node.output[0] == "v0" for node in saved.graph.node)
    assert len(saved.graph.node) - reached == distinct(nodes, heads)
    assert [tensor.name for tensor in saved.graph.initializer] == ["w"] * reached
    feeds = {"x": np.float32([1, -2, 0.5])}
    expected, found = model.run(feeds), passlib.load(folder / "out.onnx").run(feeds)
    assert list(expected) == list(found)
    for name, array in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), np.asarray(array), rtol=1e-5, atol=1e-6)


def test_a_large_graph_takes_no_quadratic_time(tmp_path: Path) -> None:
    """All of 8,000 nodes are equal to one of two."""
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    for i in range(4_000):
        nodes.append({"op": "relu", "name": f"a{i}", "inputs": [[0, 0, 0]]})
        nodes.append({"op": "exp", "name": f"b{i}", "inputs": [[2 * i + 1, 0, 0]]})
    inputs = [[2 * i + 2, 0, 0] for i in range(4_000)]
    attrs = {"num_args": "4000"}
    nodes.append({"op": "add_n", "name": "sum", "attrs": attrs, "inputs": inputs})
    heads = [[len(nodes) - 1, 0, 0]]
    symbol = sym.load_json(json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": heads}))
    merged = symbol.optimize_for(MERGE)
    assert operators(merged) == {"relu": 1, "exp": 1, "add_n": 1}


# DLPrimitives.

RELU = operator("a", "Activation", activation="relu")
DLPRIM: dict[str, tuple[list[dict[str, Any]], dict[str, Any], int]] = {
    "a function": (
        [
            RELU,
            operator("b", "Activation", activation="relu"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        1,
    ),
    "another option": (
        [
            RELU,
            operator("b", "Activation", activation="tanh"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "written over between": (
        [
            operator("a", "Abs"),
            operator("t", "Threshold", "data", "data"),
            operator("b", "Abs"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "shared weights": (
        [
            operator("a", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator("b", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        1,
    ),
    "frozen": (
        [
            operator("a", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"]),
            operator(
                "b", "Convolution2D", channels_out=2, kernel=3, params=["w", "v"], frozen=True
            ),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "statistics": (
        [
            operator("a", "BatchNorm", affine=False, params=["m", "v"]),
            operator("b", "BatchNorm", affine=False, params=["m", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        0,
    ),
    "statistics, for inference": (
        [
            operator("a", "BatchNorm", affine=False, params=["m", "v"]),
            operator("b", "BatchNorm", affine=False, params=["m", "v"]),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {"inference": 1},
        1,
    ),
    "in place of equal tensors": (
        [
            RELU,
            operator("b", "Activation", activation="relu"),
            operator("c", "Hardtanh", "a", "a"),
            operator("d", "Hardtanh", "b", "b"),
            operator("y", "Elementwise", ["a", "b"]),
        ],
        {},
        2,
    ),
}


@pytest.mark.parametrize("case", DLPRIM)
def test_dlprim(case: str, tmp_path: Path) -> None:
    described, options, merged = DLPRIM[case]
    model = with_weights(load(tmp_path, network(*described)))
    result = model.optimize_for(MERGE, **options)
    assert operators(model).total() - operators(result).total() == merged
    same_results(model, result)
    result.save(tmp_path / "out.json")
    same_results(model, passlib.load(tmp_path / "out.json"))


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.name)
def test_genuine_networks_have_nothing_to_merge(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path)
    model.optimize_for(MERGE).optimize_for("removeDeadNodes").save(tmp_path / path.name)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()


# NNVM and TVM.


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nnvm_files(path: Path, tmp_path: Path) -> None:
    model = passlib.load(path, dialect="nnvm")
    result = model.optimize_for(MERGE)
    result.save(tmp_path / "out.json")
    again = passlib.load(tmp_path / "out.json", dialect="nnvm")
    assert again.outputs == model.outputs
    if len(result.symbol.nodes()) == len(model.symbol.nodes()):
        assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


def test_calls_of_compiled_functions_are_not_merged(tmp_path: Path) -> None:
    graph = json.loads(json.dumps(TVM_EXECUTOR))
    graph["nodes"][4] = {**graph["nodes"][3], "name": "relu2"}
    path = tmp_path / "m.json"
    path.write_bytes(text_of(graph))
    model = passlib.load(path, dialect="nnvm")
    model.optimize_for(MERGE).save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
    assert NNVM_DATA.is_dir()
