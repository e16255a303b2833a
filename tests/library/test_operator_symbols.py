"""Operators of libraries in symbols: nodes, names, inputs, auxiliary states."""

from __future__ import annotations

import json
from typing import Any

import pytest

import passlib as pl
from operator_calls import variables
from passlib.errors import GraphError, UnsupportedError

pytestmark = pytest.mark.usefixtures("operators")


def test_composed_as_in_mxnet() -> None:
    a, b = variables("a", "b")
    symbol = pl.sym.plugin_product(a, b, name="p", note=(1, 2), flag=True, none=None, lr_mult=2)
    node = json.loads(symbol.tojson())["nodes"][2]
    attrs = {"note": "(1, 2)", "flag": "True", "none": "None", "__lr_mult__": "2"}
    assert node == {"op": "plugin_product", "name": "p", "attrs": attrs,
                    "inputs": [[0, 0, 0], [1, 0, 0]]}  # fmt: skip
    assert symbol.list_outputs() == ["p_output"]
    assert pl.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()


def test_names_of_outputs_and_nodes() -> None:
    with pl.name.NameManager():
        many = pl.sym.plugin_sums(*variables("a", "b"), inputs=2, outputs=3)
    assert many.list_outputs() == [f"plugin_sums0_output{i}" for i in range(3)]
    assert len(many.get_internals()) == 5
    again = pl.sym.load_json(many[1].tojson())
    assert again.get_internals().list_outputs() == ["a", "b", *many.list_outputs()]
    assert pl.sym.contrib.plugin_abs(variables("a")[0], name="c").list_outputs() == ["c_output"]
    assert "plugin_abs" in dir(pl.sym.contrib)
    assert "plugin_product" in dir(pl.sym)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (1, "operator 'plugin_product' needs the input 'arg1'"),
        (3, r"operator 'plugin_product' takes 2 inputs \(arg0, arg1\).*not 3"),
    ],
)
def test_wrong_number_of_inputs(inputs: int, words: str) -> None:
    with pytest.raises(GraphError, match=words):
        pl.sym.plugin_product(*variables(*"abc"[:inputs]))


def test_one_input_has_mxnets_name_for_it() -> None:
    assert pl.sym.plugin_abs(data=variables("a")[0]).list_arguments() == ["a"]


def test_attribute_named_dtype_is_text() -> None:
    symbol = pl.sym.plugin_abs(variables("a")[0], dtype="i8")
    assert symbol.attr("dtype") == "i8"


def test_mutated_inputs_are_auxiliary_states() -> None:
    x, total, other = variables("x", "total", "other")
    symbol = pl.sym.plugin_accumulate(pl.sym.plugin_accumulate(x, total), other) + total
    for each in (symbol, pl.sym.load_json(symbol.tojson())):
        assert each.list_arguments() == ["x"]
        assert each.list_auxiliary_states() == ["total", "other"]
    nodes = json.loads(symbol.tojson())["nodes"]
    assert nodes[2]["inputs"] == [[0, 0, 0], [1, 0, 1]]
    with pytest.raises(GraphError, match="must be a variable and is the output of"):
        pl.sym.plugin_accumulate(x, pl.sym.plugin_abs(total))


SUBGRAPH = {
    "nodes": [
        {"op": "null", "name": "a0", "inputs": []},
        {"op": "null", "name": "state0", "inputs": []},
        {"op": "plugin_accumulate", "name": "acc", "inputs": [[0, 0, 0], [1, 0, 1]]},
    ],
    "arg_nodes": [0, 1],
    "node_row_ptr": [0, 1, 2, 3],
    "heads": [[2, 0, 0]],
}


def around(inner: dict[str, Any], depth: int) -> str:
    for level in range(depth):
        inner = {
            "nodes": [
                {"op": "null", "name": f"a{level}", "inputs": []},
                {"op": "null", "name": f"s{level}", "inputs": []},
                {"op": "_plugin_subgraph", "name": f"sub{level}",
                 "inputs": [[0, 0, 0], [1, 0, 0]], "subgraphs": [inner]},
            ],
            "arg_nodes": [0, 1],
            "node_row_ptr": [0, 1, 2, 3],
            "heads": [[2, 0, 0]],
        }  # fmt: skip
    return json.dumps({**inner, "attrs": {"mxnet_version": ["int", 10901]}})


@pytest.mark.parametrize("depth", [1, 3])
def test_states_within_subgraphs(depth: int) -> None:
    symbol = pl.sym.load_json(around(SUBGRAPH, depth))
    assert symbol.list_arguments() == [f"a{depth - 1}"]
    assert symbol.list_auxiliary_states() == [f"s{depth - 1}"]
    assert symbol.list_outputs() == [f"sub{depth - 1}_output"]


def test_subgraphs_nested_too_deeply() -> None:
    symbol = pl.sym.load_json(around(SUBGRAPH, 66))
    with pytest.raises(UnsupportedError, match="more than 64 levels"):
        symbol.list_arguments()


def test_subgraph_operator_is_not_composed() -> None:
    with pytest.raises(UnsupportedError, match=r"_plugin_subgraph.*cannot be composed"):
        pl.sym._internal._plugin_subgraph(*variables("a"))
