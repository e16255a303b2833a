"""One graph of an ONNX model after the other, nested ones included, as nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx import attributes, constants, tensors
from passlib.dialects.onnx.document import (
    ABSENT,
    CAPTURED,
    DEFAULT,
    DOMAIN,
    FORMAL,
    ID,
    INPUTS_ALSO,
    OPAQUE,
    OUTER,
    OVERLOAD,
    OWN_KEYS,
    Document,
    OriginalNode,
    OriginalTensor,
)
from passlib.dialects.onnx.external import EXTERNAL, Folder
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.graph.node import VARIABLE

__all__ = ["LevelReader"]

Captures = dict[str, int]
"""Names that nested graphs of a node take from outside; which of its inputs they become."""


_Entry = tuple[int, int, int]
"""A value: position of its node, output, and the version that graphs have beside these."""


class LevelReader:
    """Makes native graphs of the graphs of a model, and fills its document.

    Parameters
    ----------
    document : Document
    folder : Path
        Of the model, for external data.
    payloads : mapping of int to numpy.ndarray
        Bytes of the main graph's initializers that were taken out of the message.
    """

    def __init__(
        self, document: Document, folder: Path, payloads: Mapping[int, np.ndarray[Any, Any]]
    ) -> None:
        self.document = document
        self.folder = Folder(folder)
        self.payloads = payloads
        self.texts: dict[bytes, tuple[str, str]] = {}
        """Names and texts of plain attributes, by the bytes of these."""

    def read(self, graph: Any) -> _core.Graph:
        """Read the main graph.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
            It is damaged, or contradicts itself.
        """
        return _Level(self, graph).build()


class _Level:
    """One graph while it is read."""

    def __init__(
        self,
        reader: LevelReader,
        proto: Any,
        prefix: str = "",
        outer: _Level | None = None,
        captures: Captures | None = None,
        formal: int = 0,
    ) -> None:
        self._reader = reader
        self._document = reader.document
        self._proto = proto
        self._prefix = prefix
        self._outer = outer
        self._captures = {} if captures is None else captures
        self._formal = formal
        self._values: dict[str, _Entry] = {}
        self._nodes: list[Any] = []
        self._node_names: set[str] = set()

    def build(self) -> _core.Graph:
        self._read_inputs()
        for position, node in enumerate(self._proto.node):
            key = f"{self._prefix}{position}"
            if node.op_type != constants.OPERATOR or not self._read_constant(node, key, position):
                self._read_node(node, key)
        heads = []
        for number, value in enumerate(self._proto.output):
            name = text_of(value.name, f"{self._prefix}output.{number}")
            heads.append(self._find(name, f"output {number} of the graph"))
        if not heads and self._outer is not None:
            raise GraphError(f"nested graph {self._prefix[:-1]!r} has no outputs")
        graph = _core.Graph.build(self._nodes, heads)
        if self._outer is None:
            graph.check()
        return graph

    # Variables.

    def _read_inputs(self) -> None:
        inputs: dict[str, tuple[Any, int]] = {}
        for number, value in enumerate(self._proto.input):
            name = text_of(value.name, f"{self._prefix}input.{number}")
            if name in inputs:
                raise GraphError(f"two inputs of the graph are named {name!r}")
            inputs[name] = (value, number)
        defaults = [
            text_of(tensor.name, f"{self._prefix}initializer.{number}")
            for number, tensor in enumerate(self._proto.initializer)
        ]
        sparse = [
            text_of(tensor.values.name, f"{self._prefix}sparse.{number}")
            for number, tensor in enumerate(self._proto.sparse_initializer)
        ]
        known = {*defaults, *sparse}
        for name, (value, number) in inputs.items():
            if name not in known:
                key = f"{self._prefix}input.{number}"
                self._document.inputs[key] = (value, number)
                self._add_variable(name, {ID: key})
        for number, tensor in enumerate(self._proto.initializer):
            self._read_initializer(number, tensor, inputs.get(defaults[number]))
        for number, tensor in enumerate(self._proto.sparse_initializer):
            key = f"{self._prefix}sparse.{number}"
            given = inputs.get(sparse[number])
            self._add_tensor(
                key, OriginalTensor("sparse", tensor, sparse[number], None, number, input=given)
            )

    def _read_initializer(self, number: int, tensor: Any, given: Any) -> None:
        key = f"{self._prefix}initializer.{number}"
        name = tensor.name
        place = f"initializer {name!r}"
        payload = None if self._prefix else self._reader.payloads.get(number)
        external = tensor.data_location == EXTERNAL
        if external:
            array = self._reader.folder.array(tensor, place)
        else:
            array = tensors.to_array(tensor, place, payload)
        if payload is not None and (array is None or external):
            # Its data goes back into the message: nobody else has it.
            tensor.raw_data = payload.tobytes()
            payload = None
        self._add_tensor(
            key,
            OriginalTensor(
                "initializer",
                tensor,
                name,
                array,
                number,
                detached=payload is not None,
                external=external,
                input=given,
            ),
        )

    def _read_constant(self, node: Any, key: str, position: int) -> bool:
        """Take a node Constant for a variable; whether it is one."""
        value = constants.value_of(node)
        if value is None:
            return False
        name = text_of(node.output[0], f"node {key}")
        array = constants.to_array(value, self._reader.folder, f"constant {name!r}")
        self._add_tensor(key, OriginalTensor("constant", node, name, array, position))
        return True

    def _add_tensor(self, key: str, tensor: OriginalTensor) -> None:
        attrs = {ID: key}
        if tensor.array is None:
            attrs[OPAQUE] = constants.opaque_kind(tensor)
        if tensor.input is not None and self._document.model.ir_version >= INPUTS_ALSO:
            attrs[DEFAULT] = "True"
        self._document.tensors[key] = tensor
        self._add_variable(tensor.name, attrs)

    def _add_variable(self, name: str, attrs: dict[str, str]) -> int:
        if not name:
            raise GraphError("an input or initializer of the graph has no name")
        self._define(name, len(self._nodes), 0)
        return self._append(VARIABLE, name, attrs, [], 1)

    def _define(self, name: str, node: int, output: int) -> None:
        if name == ABSENT:
            raise UnsupportedError(f"a value is named {ABSENT!r}, which passlib uses itself")
        if name in self._values:
            raise GraphError(f"value {name!r} is defined twice")
        self._values[name] = (node, output, 0)
        self._document.names.add(name)

    def _append(
        self,
        op: str,
        name: str,
        attrs: dict[str, str],
        inputs: Sequence[_Entry],
        outputs: int,
        subgraphs: Sequence[_core.Graph] = (),
    ) -> int:
        self._nodes.append((op, name, attrs, inputs, outputs, (), subgraphs))
        return len(self._nodes) - 1

    # Names.

    def _find_input(self, name: str, slot: int, user: str, op: str) -> _Entry:
        return self._find(text_of(name, user), f"input {slot} of node {user!r} ({op})")

    def _find(self, name: str, user: str) -> _Entry:
        """Find the value that a name stands for, in this graph or in one around it."""
        if not name:
            if "" not in self._values:
                self._values[""] = (self._append(VARIABLE, ABSENT, {}, [], 1), 0, 0)
            return self._values[""]
        found = self._values.get(name)
        if found is not None:
            return found
        if self._outer is None or not self._outer._has(name):
            raise GraphError(f"{user} is {name!r}, which nothing before it computes")
        slot = self._captures.setdefault(name, len(self._captures))
        attrs = {OUTER: str(self._formal + slot)}
        self._values[name] = (self._append(VARIABLE, name, attrs, [], 1), 0, 0)
        return self._values[name]

    def _has(self, name: str) -> bool:
        level: _Level | None = self
        while level is not None:
            if name in level._values:
                return True
            level = level._outer
        return False

    # Operators.

    def _read_node(self, node: Any, key: str) -> None:
        op = text_of(node.op_type, f"node {key}")
        if not op or op == VARIABLE:
            raise FormatError(f"node {key} has operator {op!r}")
        name = self._name_node(text_of(node.name, f"node {key}"), op, key)
        values = self._values
        inputs = [
            values.get(value) or self._find_input(value, slot, name, op)
            for slot, value in enumerate(node.input[:])
        ]
        attrs = {ID: key}
        if domain := node.domain:
            attrs[DOMAIN] = text_of(domain, name)
        if overload := node.overload:
            attrs[OVERLOAD] = text_of(overload, name)
        graphs: list[_core.Graph] = []
        captures: Captures = {}
        for value in node.attribute[:]:
            label, text = self._attribute(value, key, name, len(graphs))
            if label in OWN_KEYS:
                raise UnsupportedError(
                    f"node {name!r} ({op}): attribute {label!r} has a name that passlib uses itself"
                )
            if label in attrs:
                raise FormatError(f"node {name!r} ({op}): attribute {label!r} stands twice")
            attrs[label] = text
            if not text.startswith("subgraph["):
                continue
            for inner, proto in _graphs_of(value, f"{key}.{label}"):
                self._document.graphs[inner] = proto
                level = _Level(self._reader, proto, f"{inner}.", self, captures, len(inputs))
                graphs.append(level.build())
        if node.metadata_props:
            for entry in node.metadata_props:
                if _is_mark(entry.key) and entry.key not in attrs:
                    attrs[entry.key] = text_of(entry.value, name)
        if graphs:
            attrs[FORMAL], attrs[CAPTURED] = str(len(inputs)), str(len(captures))
            inputs += [self._find(captured, name) for captured in captures]
        self._document.nodes[key] = OriginalNode(node, name, attrs)
        outputs = node.output[:]
        position = self._append(op, name, attrs, inputs, len(outputs), graphs)
        for number, value in enumerate(outputs):
            if value:
                self._define(text_of(value, name), position, number)

    def _attribute(self, value: Any, key: str, node: str, graphs: int) -> tuple[str, str]:
        """Give name and text of an attribute. Most of them a model repeats many times."""
        known, data = self._reader.texts, b""
        if attributes.is_plain(value):
            data = value.SerializeToString()
            if data in known:
                return known[data]
        label = text_of(value.name, node)
        found = label, attributes.to_text(value, f"{key}/{label}", graphs)
        if data:
            known[data] = found
        return found

    def _name_node(self, name: str, op: str, key: str) -> str:
        wish = name or f"{op}_{key}"
        while wish in self._node_names:
            wish = f"{wish}_{key}"
        self._node_names.add(wish)
        return wish


def _graphs_of(value: Any, place: str) -> list[tuple[str, Any]]:
    kind = attributes.kind_of(value)
    if kind == attributes.GRAPH:
        return [(place, value.g)]
    if kind == attributes.GRAPHS:
        return [(f"{place}[{i}]", graph) for i, graph in enumerate(value.graphs)]
    return []


def _is_mark(key: Any) -> bool:
    """Whether metadata of a node is a mark that a pass left there."""
    return (
        isinstance(key, str)
        and len(key) > 4
        and key.startswith("__")
        and key.endswith("__")
        and key not in OWN_KEYS
    )


def text_of(text: Any, place: str) -> str:
    """Check a string of the file.

    Raises
    ------
    FormatError
        It is not UTF-8, or has a zero in it.
    """
    if not isinstance(text, str) or "\0" in text:
        raise FormatError(f"{place}: {text!r} is no name in UTF-8")
    return text
