"""The native reader of NNVM's files makes what Python makes of them, and accepts nothing more."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import passlib._core as _core
from nnvm_files import OWN, TVM_EXECUTOR, WRITTEN, text_of
from passlib.dialects.json_text import MAX_DEPTH
from passlib.dialects.nnvm.reading.file import load
from passlib.dialects.nnvm.reading.graph_attributes import PER_ENTRY
from plain_readings import both_outcomes, is_plain

SEEDS = [path.read_bytes() for path in OWN if path.stat().st_size < 5000]
SEEDS += [text_of(graph, 2) for graph in WRITTEN.values()]
WRONG = [None, True, -1, 0, 1, 5, 2**31, 2**63, 2**70, 1.5, "", "x", [], {}, [[]], [0]]


def outcomes(text: bytes) -> tuple[Any, Any]:
    def read() -> tuple[_core.Graph, Any]:
        graph, attributes, _ = load(text)
        return graph, attributes

    return both_outcomes("read_nnvm", read)


def changed(**members: Any) -> bytes:
    """TVM's graph with other top-level members; None removes one."""
    graph = {**copy.deepcopy(TVM_EXECUTOR), **members}
    return text_of({key: value for key, value in graph.items() if value is not None})


def with_node(place: int, **members: Any) -> bytes:
    """TVM's graph with other members of one node; None removes one."""
    nodes = copy.deepcopy(TVM_EXECUTOR["nodes"])
    nodes[place] = {k: v for k, v in {**nodes[place], **members}.items() if v is not None}
    return changed(nodes=nodes)


def with_attribute(name: str, value: Any) -> bytes:
    return changed(attrs={**TVM_EXECUTOR["attrs"], name: value})


TEXT = text_of(TVM_EXECUTOR)
DEEP = b"[" * 190 + b"]" * 190

ACCEPTED = {
    "as TVM writes it": TEXT,
    "indented": text_of(TVM_EXECUTOR, 2),
    "entries of two numbers": with_node(4, inputs=[[3, 0]]),
    "a version": with_node(4, inputs=[[3, 0, 2147483647]]),
    "escapes": TEXT.replace(b'"A"', b'"\\u00e9\\ud83d\\ude00\\n"'),
    "attributes of the first NNVM": with_node(4, attrs=None, attr={"a": "b"}),
    "attributes of a variable": with_node(0, param={"__shape__": "(1,)"}),
    "other graph attributes": with_attribute("more", ["list_any", [{"a": [None, 1.5e3]}]]),
    "a member that nobody knows": changed(metadata={"a": [1, -0.0, "x"]}),
    "one that is no container": changed(version="1.\u00e9"),
    "a number": changed(version=-0.0),
    "deep nesting": TEXT[:-1] + b', "x": ' + DEEP + b"}",
    "several outputs": changed(node_row_ptr=[0, 1, 2, 4, 5, 7], attrs=None),
    "no attributes": changed(attrs=None),
}

REFUSED = {
    "nothing": b"",
    "too deep nesting": TEXT[:-1] + b', "x": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    "a repeated member": TEXT[:-1] + b', "nodes": []}',
    "a repeated other member": TEXT[:-1] + b', "x": 1, "x": 1}',
    "a repeated key deep inside": TEXT[:-1] + b', "x": [{"a": 1, "a": 1}]}',
    "a repeated key of a node": TEXT.replace(b'"op"', b'"name": "B", "op"', 1),
    "a repeated attribute": TEXT.replace(b'"num_inputs"', b'"num_inputs": "2", "num_inputs"', 1),
    "a repeated graph attribute": TEXT.replace(
        b'"storage_id"', b'"storage_id": ["int", 1], "storage_id"'
    ),
    "bytes that are no UTF-8": TEXT.replace(b'"A"', b'"\xff"'),
    "half of a surrogate pair": TEXT.replace(b'"A"', b'"\\ud800"'),
    "something behind the end": TEXT + b"x",
    "a cut text": TEXT[:-1],
    "a later node": with_node(2, inputs=[[3, 0, 0]]),
    "itself": with_node(4, inputs=[[4, 0, 0]]),
    "no such node": with_node(4, inputs=[[5, 0, 0]]),
    "no such output": with_node(4, inputs=[[3, 1, 0]]),
    "a negative number": with_node(4, inputs=[[-1, 0, 0]]),
    "minus zero": TEXT.replace(b"[[3, 0, 0]]", b"[[3, -0, 0]]"),
    "a fraction": TEXT.replace(b"[[3, 0, 0]]", b"[[3, 0.0, 0]]"),
    "a number of 32 bits": with_node(4, inputs=[[3, 0, 2**31]]),
    "a huge number": with_node(4, inputs=[[10**400, 0, 0]]),
    "an entry of one number": with_node(4, inputs=[[3]]),
    "an entry of four": with_node(4, inputs=[[3, 0, 0, 0]]),
    "no operator": with_node(4, op=""),
    "inputs of a variable": with_node(1, inputs=[[0, 0, 0]]),
    "a variable twice": with_node(1, name="A"),
    "an operator named like a variable": with_node(4, name="A"),
    "an operator without a name": with_node(4, name=""),
    "two operators of one name": with_node(4, name="relu"),
    "control dependencies": with_node(4, control_deps=[2]),
    "nested graphs": with_node(4, subgraphs=[TVM_EXECUTOR]),
    "an attribute that is no string": with_node(4, attrs={"a": 1}),
    "the attribute of passlib": with_node(4, attrs={"__id__": "0"}),
    "many attributes": with_node(4, attrs={f"a{i}": "" for i in range(1000)}),
    "two kinds of attributes": with_node(4, attr={"a": "b"}),
    "attributes of the graph twice": changed(attr={}),
    "many other members": changed(**{f"a{i}": 1 for i in range(1000)}),
    "no nodes": changed(nodes=None),
    "no variables": changed(arg_nodes=None),
    "no outputs": changed(heads=None),
    "an empty list of outputs": changed(heads=[]),
    "an output that is not there": changed(heads=[[5, 0, 0]]),
    "an output of a node that is not there": changed(heads=[[4, 1, 0]]),
    "a variable that is not there": changed(arg_nodes=[0, 1, 5]),
    "a variable that is none": changed(arg_nodes=[0, 1, 2]),
    "no rows": changed(node_row_ptr=None),
    "a row too few": changed(node_row_ptr=[0, 1, 2, 3, 4]),
    "rows from 1": changed(node_row_ptr=[1, 2, 3, 4, 5, 6]),
    "rows that fall": changed(node_row_ptr=[0, 1, 0, 3, 4, 5]),
    "rows that overflow": changed(node_row_ptr=[0, 2**63 - 1, -(2**63), 3, 4, 5]),
    "more outputs than any node has": changed(node_row_ptr=[0, 1, 2, 3, 4, 5 + 2**20]),
    "no outputs of a node that is used": changed(node_row_ptr=[0, 0, 1, 2, 3, 4]),
    "too few values": with_attribute("storage_id", ["list_int", [0]]),
    "another type": with_attribute("storage_id", ["list_str", ["0"] * 5]),
    "a value of another type": with_attribute("storage_id", ["list_int", [0, 1, 2, 3, None]]),
    "a shape of another type": with_attribute("shape", ["list_shape", [[1]] * 4 + [1]]),
    "no pair": with_attribute("more", ["int", 1, 1]),
    "a type alone": with_attribute("more", ["int"]),
    "a type that is no string": with_attribute("more", [1, 1]),
    "a negative size": with_attribute("more", ["size_t", -1]),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=list(ACCEPTED))
def test_plain_file_is_read_natively_as_by_python(text: bytes) -> None:
    assert is_plain("read_nnvm", lambda: load(text))
    native, python = outcomes(text)
    assert native == python
    assert native[1]  # heads


@pytest.mark.parametrize("text", REFUSED.values(), ids=list(REFUSED))
def test_other_file_is_left_to_python(text: bytes) -> None:
    assert _core.read_nnvm(text, "__id__", PER_ENTRY, MAX_DEPTH) is None


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_changed_values_have_the_same_outcome(seed: int) -> None:
    chance = random.Random(seed)
    graph = copy.deepcopy(chance.choice(list(WRITTEN.values())))
    place: Any = graph
    while isinstance(place, (dict, list)) and place:
        above, key = (
            place,
            chance.choice(list(place) if isinstance(place, dict) else range(len(place))),
        )
        place = place[key]
        if chance.random() < 0.1:
            break
    above[key] = chance.choice(WRONG)
    native, python = outcomes(text_of(graph))
    assert native == python


@settings(deadline=None, max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_changed_bytes_have_the_same_outcome(seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(data))
        data[at : at + chance.choice([0, 1, 10])] = chance.choice(
            [b"", b"0", b"9" * 30, b'"', b"[", b"}", b"\\u0000", b"\xff", bytes(data[at : at + 30])]
        )
    native, python = outcomes(bytes(data))
    assert native == python


def test_text_of_own_attributes_is_the_files() -> None:
    text = changed(metadata={"b": [1.50, "x"]}, version=1e2)
    _, attributes, _ = load(text)
    assert json.loads(attributes["metadata"]) == {"b": [1.5, "x"]}
    assert attributes["version"] == "100.0"
