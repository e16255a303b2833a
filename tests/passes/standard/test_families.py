"""Standard passes in Python on the models of MXNet, NNVM and DLPrimitives."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import passlib
from dlprim_files import load, network, same_results
from dlprim_files import operator as layer
from family_models import (
    CUBE,
    FOLDED,
    IMAGE,
    ROWS,
    Case,
    X,
    conv,
    dense,
    made,
    relu,
    shared_weights,
    two_users,
)
from nnvm_files import text_of
from passlib import sym
from passlib.graph.node import Node
from passlib.model import Model
from passlib.mxnet import schema
from passlib.passes.standard.families.constants import is_function
from places import ROOT


def numbers(model: Model, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    x = np.random.default_rng(4).normal(size=shape).astype(np.float32)
    result = model(x)
    return [np.asarray(each) for each in (result if isinstance(result, list) else [result])]


def operators(model: Model) -> dict[str, int]:
    return dict(Counter(node.op for node in model.symbol.nodes() if not node.is_variable))


LEFT: dict[str, Case] = {
    "Dropout that always drops": (
        "removeNoOps",
        lambda: relu(sym.Dropout(X, mode="always", p=0.0)),
        ROWS,
        {},
    ),
    "an output": ("removeNoOps", lambda: sym.BlockGrad(X, name="named"), ROWS, {}),
    "truth values, perhaps, times 1, which are integers": (
        "removeNoOps",
        lambda: relu(X * 1.0),
        ROWS,
        {},
    ),
    "the addition of 0.0": ("removeNoOps", lambda: relu(dense() + 0.0), ROWS, {}),
    "Flatten for others": (
        "removeNoOps",
        lambda: relu(dense(sym.Flatten(X), flatten=False)),
        IMAGE,
        {},
    ),
    "a split that squeezes": (
        "removeNoOps",
        lambda: relu(sym.split(sym.sum(X, axis=1, keepdims=True), num_outputs=1, squeeze_axis=1)),
        ROWS,
        {},
    ),
    "Concat that something else uses": (
        "mergeConcats",
        lambda: sym.Group([relu(sym.concat(c := sym.concat(X, X), X)), sym.exp(c)]),
        ROWS,
        {},
    ),
    "Concat on another axis": (
        "mergeConcats",
        lambda: relu(sym.concat(sym.concat(X, X, dim=0), sym.concat(X, X, dim=0), dim=1)),
        ROWS,
        {},
    ),
    "a layer that two use": ("foldLinear", two_users, IMAGE, {}),
    "weights that two layers use": ("foldLinear", shared_weights, IMAGE, {}),
    "a constant for each column": (
        "foldLinear",
        lambda: relu(sym.broadcast_mul(conv(), sym.var("c", shape=(1, 1, 1, 3)))),
        IMAGE,
        {},
    ),
    "a layer as divisor": ("foldLinear", lambda: relu(1.0 / conv()), IMAGE, {}),
    "weights that would be infinite": ("foldLinear", lambda: relu(conv() * 3e38 * 1e10), IMAGE, {}),
    "a mirror around": (
        "foldLinear",
        lambda: relu(conv(sym.pad(X, mode="reflect", pad_width=(0, 0, 0, 0, 1, 1, 1, 1)))),
        IMAGE,
        {},
    ),
    "other zeros on the left than on the right": (
        "foldLinear",
        lambda: relu(conv(sym.pad(X, mode="constant", pad_width=(0, 0, 0, 0, 1, 0, 1, 1)))),
        IMAGE,
        {},
    ),
    "transposes of an unknown rank": (
        "cancelTransposes",
        lambda: relu(sym.transpose(sym.transpose(X))),
        CUBE,
        {},
    ),
    "random numbers": (
        "foldConstants",
        lambda: relu(sym.broadcast_add(X, 0 * sym.random.uniform(shape=(1,)))),
        ROWS,
        {},
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_mxnet(name: str) -> None:
    step, build, shape, expected = FOLDED[name]
    before = made(build(), shape)
    after = before.optimize_for(step)
    assert operators(after) == expected
    for have, want in zip(numbers(after, shape), numbers(before, shape), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-5)
    assert after.symbol.list_outputs() == before.symbol.list_outputs()
    assert {*after.args, *after.aux} == {*after.symbol.list_inputs()} - {"data"}
    assert operators(before.simplify()) == operators(after)


@pytest.mark.parametrize("name", LEFT)
def test_mxnet_models_that_stay(name: str) -> None:
    step, build, shape, _ = LEFT[name]
    before = made(build(), shape)
    assert before.optimize_for(step).symbol.tojson() == before.symbol.tojson()


def test_operators_with_effects_are_not_folded(
    load_plugin: Callable[[str], passlib.library.Library],
) -> None:
    """Those of libraries, and those that mergeEqualNodes does not merge, as a test compares."""
    load_plugin("graph_operators")
    assert "tp_counter" in schema.names()
    source = (ROOT / "cpp/passes/facts/known_operators.cc").read_text("utf-8")
    found = re.search(r'kMXNet\[\] = R"names\((.*?)\)names"', source, re.S)
    assert found is not None
    pure = set(found[1].split())
    graph = SimpleNamespace(dialect="mxnet")
    folded = [
        name for name in schema.names() if name not in pure and is_function(graph, Node(name, "n"))
    ]
    assert not folded


NNVM: dict[str, tuple[str, list[dict[str, Any]], list[str]]] = {
    "what does nothing": (
        "removeNoOps",
        [
            {"op": "dropout", "name": "a", "attrs": {"rate": "0.5"}, "inputs": [[0, 0, 0]]},
            {"op": "copy", "name": "b", "inputs": [[1, 0, 0]]},
            {"op": "transpose", "name": "c", "attrs": {"axes": "(0, 1)"}, "inputs": [[2, 0, 0]]},
            {"op": "block_grad", "name": "d", "inputs": [[3, 0, 0]]},
            {"op": "relu", "name": "e", "inputs": [[4, 0, 0]]},
        ],
        ["relu"],
    ),
    "transposes": (
        "cancelTransposes",
        [
            {"op": "transpose", "name": "a", "attrs": {"axes": "[1, 0]"}, "inputs": [[0, 0, 0]]},
            {"op": "transpose", "name": "b", "attrs": {"axes": "[1, 0]"}, "inputs": [[1, 0, 0]]},
            {"op": "relu", "name": "c", "inputs": [[2, 0, 0]]},
        ],
        ["relu"],
    ),
    "concatenations": (
        "mergeConcats",
        [
            {"op": "concatenate", "name": "a", "inputs": [[0, 0, 0], [0, 0, 0]]},
            {"op": "concatenate", "name": "b", "inputs": [[0, 0, 0], [1, 0, 0]]},
            {"op": "relu", "name": "c", "inputs": [[2, 0, 0]]},
        ],
        ["concatenate", "relu"],
    ),
    "a control dependency": (
        "removeNoOps",
        [
            {"op": "copy", "name": "a", "inputs": [[0, 0, 0]]},
            {"op": "relu", "name": "b", "inputs": [[0, 0, 0]], "control_deps": [1]},
        ],
        ["copy", "relu"],
    ),
}


@pytest.mark.parametrize("name", NNVM)
def test_nnvm(name: str, tmp_path: Path) -> None:
    step, nodes, expected = NNVM[name]
    graph = {
        "nodes": [{"op": "null", "name": "x", "inputs": []}, *nodes],
        "arg_nodes": [0],
        "heads": [[len(nodes), 0, 0]],
    }
    path = tmp_path / "graph.json"
    path.write_bytes(text_of(graph))
    before = passlib.load(path, dialect="nnvm")
    after = before.optimize_for(step)
    after.save(tmp_path / "after.json")
    written = json.loads((tmp_path / "after.json").read_text())["nodes"]
    assert [node["op"] for node in written if node["op"] != "null"] == expected
    x = np.random.default_rng(2).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_array_equal(after(x), before(x))


DLPRIM: dict[str, tuple[list[dict[str, Any]], list[str]]] = {
    "an activation that is none": (
        [layer("a", "Activation", activation="identity"), layer("y", "Abs", "a")],
        ["Abs"],
    ),
    "a concatenation of one": ([layer("a", "Concat", ["data"]), layer("y", "Abs", "a")], ["Abs"]),
    "a copy of what is written over": (
        [
            layer("a", "Activation", activation="identity"),
            layer("t", "Threshold", "data", "data"),
            layer("y", "Elementwise", ["a", "data"]),
        ],
        ["Threshold", "Elementwise"],
    ),
    "an activation": (
        [layer("a", "Activation", activation="tanh"), layer("y", "Abs", "a")],
        ["Activation", "Abs"],
    ),
}


@pytest.mark.parametrize("name", DLPRIM)
def test_dlprimitives(name: str, tmp_path: Path) -> None:
    layers, expected = DLPRIM[name]
    before = load(tmp_path, network(*layers))
    after = before.optimize_for("removeNoOps")
    assert [node.op for node in after.symbol.nodes() if not node.is_variable] == expected
    same_results(before, after)
