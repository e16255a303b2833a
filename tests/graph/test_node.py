"""Nodes and entries never change once they are made."""

from __future__ import annotations

from typing import Any

import pytest

import passlib
from passlib.graph.node import Entry, Node

FIELDS: dict[str, Any] = {
    "op": "Sigmoid",
    "name": "other",
    "attrs": {"k": "v"},
    "inputs": (),
    "num_outputs": 2,
    "control_deps": (),
    "subgraphs": (),
}


@pytest.fixture
def node() -> Node:
    x = Node("null", "x")
    return Node("relu", "r", {"key": "value"}, [Entry(x)], 1, [x])


def state(node: Node) -> dict[str, Any]:
    return {field: getattr(node, field) for field in FIELDS}


@pytest.mark.parametrize("field", [*FIELDS, "is_variable", "something_else"])
def test_no_attribute_of_a_node_can_be_set_or_deleted(node: Node, field: str) -> None:
    before = state(node)
    with pytest.raises(AttributeError, match=f"node 'r' is immutable: '{field}' cannot be set"):
        setattr(node, field, FIELDS.get(field))
    with pytest.raises(AttributeError, match=f"node 'r' is immutable: '{field}'"):
        delattr(node, field)
    assert state(node) == before


def test_attributes_of_a_node_are_read_only(node: Node) -> None:
    attrs: Any = node.attrs
    with pytest.raises(TypeError):
        attrs["key"] = "other"
    with pytest.raises(TypeError):
        attrs["new"] = "value"
    with pytest.raises(TypeError):
        del attrs["key"]
    assert dict(node.attrs) == {"key": "value"}


def test_node_keeps_nothing_of_its_arguments() -> None:
    x = Node("null", "x")
    attrs, inputs = {"key": "value"}, [Entry(x)]
    node = Node("relu", "r", attrs, inputs)
    attrs["key"] = "other"
    inputs.clear()
    assert dict(node.attrs) == {"key": "value"}
    assert node.inputs == (Entry(x),)


@pytest.mark.parametrize("field", ["node", "index", "version", "something_else"])
def test_no_attribute_of_an_entry_can_be_set_or_deleted(node: Node, field: str) -> None:
    entry = Entry(node, 0, 1)
    with pytest.raises(AttributeError):
        setattr(entry, field, 1)
    with pytest.raises(AttributeError):
        delattr(entry, field)
    assert entry == (node, 0, 1)


def test_nodes_of_a_symbol_are_frozen_too() -> None:
    symbol = passlib.sym.relu(passlib.sym.var("x"), name="r")
    text = symbol.tojson()
    for node in symbol.nodes():
        assert isinstance(node, passlib.Node)
        with pytest.raises(AttributeError, match="immutable"):
            node.op = "Sigmoid"
    assert symbol.tojson() == text
