"""The standard pass mergeEqualNodes on MXNet's graphs: what it merges, and what it must not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from node_counts import operators
from passlib import sym
from passlib.model import Model
from passlib.symbol import Symbol

MERGE = "mergeEqualNodes"

pytestmark = pytest.mark.usefixtures("standard_passes", "handover")


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
    text = twice(sym.var("data"), sym.relu).tojson().replace('"relu"', '"of_no_library"')
    symbol = sym.load_json(text)
    assert operators(symbol.optimize_for(MERGE, inference=1))["of_no_library"] == 2


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
        changed = Model.of_parts(symbol, {**args, "b_bias": other}, {}, None)
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


def test_a_large_graph_takes_no_quadratic_time(tmp_path: Path) -> None:
    """Merge 8,000 nodes into two."""
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
