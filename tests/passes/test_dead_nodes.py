"""The standard pass removeDeadNodes: the nodes that it removes and keeps in each dialect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import passlib
from dlprim_files import load, network, operator, same_results, with_weights
from nnvm_files import NNVM_CORE, OWN, TVM_EXECUTOR, text_of
from onnx_models import save as save_onnx
from passlib.model import Model

DEAD = "removeDeadNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


def names(model: Model) -> set[str]:
    return {node.name for node in model.symbol.nodes()}


HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x, bool c, float[4] unused) => '
ONNX: dict[str, tuple[str, list[str], list[str]]] = {
    "a chain": (
        "(float[N, 4] y) { a = Exp(x) b = Tanh(a) y = Relu(x) }",
        ["Relu"],
        [],
    ),
    "weights": (
        (
            "(float[N, 4] y) <float[4] v = {1, 2, 3, 4}, float[4] w = {1, 2, 3, 4}>"
            " { a = Add(x, v) y = Mul(x, w) }"
        ),
        ["Mul"],
        ["w"],
    ),
    "constants": (
        "(float[N, 4] y) { k = Constant<value_float = 2.0>() a = Add(x, k) y = Relu(x) }",
        ["Relu"],
        [],
    ),
    "one output of two": (
        "(float[N, M] y) <int64[1] k = {2}> { y, i = TopK(x, k) j = Neg(i) }",
        ["TopK"],
        ["k"],
    ),
    "random numbers": ("(float[N, 4] y) { a = RandomNormalLike(x) y = Relu(x) }", ["Relu"], []),
    "captured by a body": (
        (
            "(float[N, 4] y) { a = Exp(x) b = Tanh(x) y = If(c) <"
            "then_branch = t () => (r) { r = Relu(a) }, else_branch = e () => (s) { s = Neg(x) }> }"
        ),
        ["Exp", "If", "Relu", "Neg"],
        [],
    ),
    "inside a body": (
        (
            "(float[N, 4] y) { y = If(c) <then_branch = t () => (r) { p = Exp(x) r = Relu(x) },"
            " else_branch = e () => (s) { s = Neg(x) q = Abs(s) }> }"
        ),
        ["If", "Relu", "Neg"],
        [],
    ),
    "captured for what is dead": (
        (
            "(float[N, 4] y) { a = Exp(x) b = Tanh(x) d = Sin(x) y = If(c) <"
            "then_branch = t () => (r) { p = Mul(a, b) r = Relu(d) },"
            " else_branch = e () => (s) { q = Neg(a) s = Abs(b) }> }"
        ),
        ["Tanh", "Sin", "If", "Relu", "Abs"],
        [],
    ),
    "captured through two graphs for what is dead": (
        (
            "(float[N, 4] y) { a = Exp(x) b = Tanh(x) y = If(c) <then_branch = t () => (r) {"
            " r = If(c) <then_branch = t2 () => (r2) { p = Mul(a, b) r2 = Relu(b) },"
            " else_branch = e2 () => (s2) { s2 = Neg(x) }> }, else_branch = e () => (s) {"
            " s = Identity(x) }> }"
        ),
        ["Tanh", "If", "If", "Relu", "Neg", "Identity"],
        [],
    ),
    "a weight captured for what is dead": (
        (
            "(float[N, 4] y) <float[4] w = {1, 2, 3, 4}> { y = If(c) <then_branch = t () => (r) {"
            " p = Mul(x, w) r = Relu(x) }, else_branch = e () => (s) { s = Abs(x) }> }"
        ),
        ["If", "Relu", "Abs"],
        [],
    ),
}


def all_operators(graph: onnx.GraphProto) -> list[str]:
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for attribute in sorted(node.attribute, key=lambda a: a.name, reverse=True):
            found += all_operators(attribute.g) if attribute.HasField("g") else []
    return found


@pytest.mark.parametrize("case", ONNX)
def test_onnx(case: str, tmp_path: Path) -> None:
    body, kept, weights = ONNX[case]
    path, saved = save_onnx(HEAD + body, tmp_path / "m.onnx"), tmp_path / "out.onnx"
    model = passlib.load(path)
    model.optimize_for(DEAD).save(saved)
    graph = onnx.load(saved).graph
    onnx.checker.check_model(onnx.load(saved), full_check=True)
    assert all_operators(graph) == kept
    assert [tensor.name for tensor in graph.initializer] == weights
    assert [value.name for value in graph.input] == ["x", "c", "unused"]
    feeds = {"x": np.float32([[1, -2, 3, -4]]), "c": np.array(True), "unused": np.zeros(4, "f4")}
    expected, found = model.run(feeds), passlib.load(saved).run(feeds)
    np.testing.assert_array_equal(np.asarray(found["y"]), np.asarray(expected["y"]))


@pytest.mark.parametrize(("version", "kept"), [(8, ["v"]), (3, [])])
def test_default_of_an_unused_input(version: int, kept: list[str], tmp_path: Path) -> None:
    text = (
        f'<ir_version: {version}, opset_import: ["" : 8]> g (float[4] x, float[4] v) => '
        "(float[4] y) <float[4] v = {1, 2, 3, 4}> { a = Add(x, v) y = Relu(x) }"
    )
    model = onnx.parser.parse_model(text)
    if not model.graph.initializer:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, "f4"), "v"))
    onnx.save(model, tmp_path / "m.onnx")
    passlib.load(tmp_path / "m.onnx").optimize_for(DEAD).save(tmp_path / "out.onnx")
    graph = onnx.load(tmp_path / "out.onnx").graph
    assert [node.op_type for node in graph.node] == ["Relu"]
    assert [tensor.name for tensor in graph.initializer] == kept


DLPRIM: dict[str, tuple[list[dict[str, Any]], list[str], set[str]]] = {
    "a chain with weights": (
        [
            operator("a", "InnerProduct", outputs=3),
            operator("b", "Softmax", "a"),
            operator("y", "Abs"),
        ],
        ["y"],
        {"data", "y"},
    ),
    "written in place, and not read": (
        [
            operator("y", "Abs"),
            operator("r", "Activation", "data", "data", activation="relu"),
        ],
        ["y"],
        {"data", "y"},
    ),
    "written in place, and read": (
        [
            operator("r", "Activation", "data", "data", activation="relu"),
            operator("y", "Abs"),
        ],
        ["y"],
        {"data", "r", "y"},
    ),
    "statistics of its own": (
        [operator("n", "BatchNorm", affine=False), operator("y", "Abs")],
        ["y"],
        {"data", "y"},
    ),
    "statistics that are used": (
        [
            operator("n", "BatchNorm", affine=False, params=["m", "v"]),
            operator("y", "BatchNorm", affine=False, params=["m", "v"]),
        ],
        ["y"],
        {"data", "m", "v", "n", "y"},
    ),
    "statistics that are only read": (
        [
            operator("n", "BatchNorm", affine=False, params=["m", "v"], use_global_stats=True),
            operator("y", "BatchNorm", affine=False, params=["m", "v"]),
        ],
        ["y"],
        {"data", "m", "v", "y"},
    ),
}


@pytest.mark.parametrize("case", DLPRIM)
def test_dlprim(case: str, tmp_path: Path) -> None:
    operators, outputs, kept = DLPRIM[case]
    model = with_weights(load(tmp_path, network(*operators, shape=(2, 3), outputs=outputs)))
    result = model.optimize_for(DEAD)
    assert names(result) == kept
    assert {*result.args, *result.aux} == kept & {*model.args, *model.aux}
    same_results(model, result)
    result.save(tmp_path / "out.json")
    same_results(model, passlib.load(tmp_path / "out.json"))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nnvm_files_have_no_dead_nodes(path: Path, tmp_path: Path) -> None:
    passlib.load(path, dialect="nnvm").optimize_for(DEAD).save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("op", "kept"), [("relu", False), ("dropout", False), ("unknown_operator", True)]
)
def test_nnvm(op: str, kept: bool, tmp_path: Path) -> None:
    graph = json.loads(json.dumps(NNVM_CORE))
    graph["nodes"].append({"op": op, "name": "dead", "inputs": [[2, 0, 0]]})
    path = tmp_path / "m.json"
    path.write_bytes(text_of(graph))
    result = passlib.load(path, dialect="nnvm").optimize_for(DEAD)
    assert ("dead" in names(result)) == kept
    result.save(tmp_path / "out.json")
    again = passlib.load(tmp_path / "out.json", dialect="nnvm")
    assert again.outputs == result.outputs


def test_calls_of_compiled_functions_stay(tmp_path: Path) -> None:
    graph = json.loads(json.dumps(TVM_EXECUTOR))
    graph["heads"] = [[3, 0, 0]]
    path = tmp_path / "m.json"
    path.write_bytes(text_of(graph))
    passlib.load(path, dialect="nnvm").optimize_for(DEAD).save(tmp_path / "out.json")
    assert (tmp_path / "out.json").read_bytes() == path.read_bytes()
