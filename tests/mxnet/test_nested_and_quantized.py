"""Errors of loops, branches and operators on 8-bit numbers."""

from __future__ import annotations

import numpy as np
import pytest

from mxnet_graph import PlainGraph, graph_of, read_graph
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.node import Entry, Node
from passlib.lowering import TypeSpec
from passlib.mxnet.lower import lower

RANGES = "abcd"
EIGHT_BITS = [
    ("_contrib_dequantize", "xab", {}),
    ("_contrib_quantized_pooling", "xab", {"kernel": "(2, 2)"}),
    ("_contrib_quantized_act", "xab", {"act_type": "relu"}),
    ("_contrib_quantized_concat", "xab", {"num_args": "1"}),
    ("_contrib_quantized_elemwise_add", "xxabcd", {}),
    ("_contrib_quantized_elemwise_mul", "xxabcd", {}),
    ("_contrib_quantized_fully_connected", "xxabcd", {"num_hidden": "2", "no_bias": "True"}),
    ("_contrib_quantized_conv", "xxabcd", {"kernel": "(1, 1)", "num_filter": "1", "no_bias": "1"}),
    ("_sg_mkldnn_selfatt_qk", "xab", {"heads": "1", "quantized": "True"}),
]


def lowered(op: str, names: str, attributes: dict[str, str], dtypes: list[str]) -> object:
    specs = {
        f"{name}{place}": TypeSpec(np.dtype(dtype), (1,) if name in RANGES else (1, 1, 2, 2))
        for place, (name, dtype) in enumerate(zip(names, dtypes, strict=True))
    }
    return lower(graph_of(op, list(specs), attributes, 3), specs, {})


@pytest.mark.parametrize(("op", "names", "attributes"), EIGHT_BITS)
def test_real_numbers_are_refused(op: str, names: str, attributes: dict[str, str]) -> None:
    with pytest.raises((UnsupportedError, GraphError), match=rf"node 'op' \({op}\)"):
        lowered(op, names, attributes, ["float32"] * len(names))


def test_a_sum_that_mxnet_computes_wrongly_is_refused() -> None:
    types = ["int8", "uint8", *["float32"] * 4]
    with pytest.raises(UnsupportedError, match="drops the uint8 operand"):
        lowered("_contrib_quantized_elemwise_add", "xxabcd", {}, types)


def loop(op: str, attributes: dict[str, str], graphs: int = 1) -> PlainGraph:
    x = Node("null", "x")
    body = PlainGraph((Entry(Node("_copy", "c", {}, [Entry(Node("null", "inner"))], 1)),))
    node = Node(op, "loop", attributes, [Entry(x)], 1, subgraphs=[body] * graphs)
    return PlainGraph((Entry(node),))


ONE = {"num_outputs": "1", "num_out_data": "1"}
FOREACH = {"in_data_locs": "[0]", "in_state_locs": "[]", "remain_locs": "[]", "num_args": "2"}
FOREACH |= ONE
WHILE = {"cond_input_locs": "[0]", "func_input_locs": "[0]", "func_var_locs": "[0]"}
WHILE |= {**ONE, "num_args": "3", "max_iterations": "3"}
COND = {f"{part}_input_locs": "[4]" for part in ("cond", "then", "else")}
COND |= {"num_args": "4", "num_outputs": "1"}
DAMAGED = [
    ("_foreach", FOREACH, 0, GraphError, "0 nested graphs"),
    ("_foreach", {**FOREACH, "num_out_data": "2"}, 1, GraphError, "there are 1 values"),
    ("_foreach", {**FOREACH, "in_data_locs": "[3]"}, 1, GraphError, "put 1 values at"),
    ("_while_loop", {**WHILE, "max_iterations": "0"}, 2, GraphError, "at least 1"),
    (
        "_while_loop",
        {**WHILE, "func_input_locs": "[7]"},
        2,
        GraphError,
        "refers to input 7 of 1",
    ),
    (
        "_cond",
        COND,
        3,
        GraphError,
        "refers to input 4 of 1",
    ),
    *(
        (op, {k: v for k, v in attributes.items() if k != name}, graphs, GraphError, f"{name!r}")
        for op, attributes, graphs in (
            ("_foreach", FOREACH, 1),
            ("_while_loop", WHILE, 2),
            ("_cond", COND, 3),
        )
        for name in attributes
    ),
]


@pytest.mark.parametrize(("op", "attributes", "graphs", "error", "text"), DAMAGED)
def test_damaged_loops_are_named(
    op: str, attributes: dict[str, str], graphs: int, error: type[Exception], text: str
) -> None:
    spec = TypeSpec(np.dtype(np.float32), (2, 3))
    with pytest.raises(error, match=rf"node 'loop' \({op}\).*{text}"):
        lower(loop(op, attributes, graphs), {"x": spec}, {})


def test_nested_graphs_are_read_from_files() -> None:
    text = (
        '{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "_foreach", "name": "f", '
        '"attrs": {"in_data_locs": "[0]", "in_state_locs": "[]", "remain_locs": "[]", '
        '"num_out_data": "1", "num_outputs": "1", "num_args": "2"}, '
        '"inputs": [[0, 0, 0]], "subgraphs": [{"nodes": [{"op": "null", "name": "y", '
        '"inputs": []}, {"op": "exp", "name": "e", "inputs": [[0, 0, 0]]}], '
        '"heads": [[1, 0, 0]]}]}], "heads": [[1, 0, 0]]}'
    )
    made = lower(read_graph(text), {"x": TypeSpec(np.dtype(np.float32), (None, 3))}, {})
    assert [node.op_type for node in made.model.graph.node] == ["Scan"]
