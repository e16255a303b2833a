"""Graphs of an ONNX model, the main one and those nested in it, as nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx import attributes, tensors
from passlib.dialects.onnx.document import (
    CAPTURED,
    DEFAULT,
    DOMAIN,
    FORMAL,
    ID,
    INPUTS_ALSO,
    OPAQUE,
    OVERLOAD,
    OWN_KEYS,
    Document,
    OriginalNode,
    OriginalTensor,
)
from passlib.dialects.onnx.external import EXTERNAL, Folder
from passlib.dialects.onnx.reading import attribute_text, constants
from passlib.dialects.onnx.reading.scope import Enclosing, Entry, Scope
from passlib.dialects.onnx.schema import CONSTANT
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.graph.node import VARIABLE

__all__ = ["LevelReader"]


class LevelReader:
    """Makes native graphs of the graphs of a model, and fills its document.

    Parameters
    ----------
    document : Document
    folder : Path
        The model's folder, for external data.
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
        """Names and texts of plain attributes, by their serialized form."""

    def read(self, graph: Any) -> _core.Graph:
        """Read the main graph.

        Raises
        ------
        FormatError, GraphError, UnsupportedError
            It is damaged, or contradicts itself.
        """
        return _Level(self, graph).build()


class _Level:
    """One graph while it is read.

    Parameters
    ----------
    reader : LevelReader
    proto : onnx.GraphProto
    prefix : str
        What the `ID` of each of its nodes starts with.
    enclosing : Enclosing, optional
        The node around a nested graph.
    """

    def __init__(
        self, reader: LevelReader, proto: Any, prefix: str = "", enclosing: Enclosing | None = None
    ) -> None:
        self._reader = reader
        self._document = reader.document
        self._proto = proto
        self._prefix = prefix
        self._nested = enclosing is not None
        self._scope = Scope(reader.document.names, enclosing)
        self._node_names: set[str] = set()

    def build(self) -> _core.Graph:
        self._read_inputs()
        for position, node in enumerate(self._proto.node):
            key = f"{self._prefix}{position}"
            if node.op_type != CONSTANT or not self._read_constant(node, key, position):
                self._read_node(node, key)
        heads = []
        for number, value in enumerate(self._proto.output):
            name = _text_of(value.name, f"{self._prefix}output.{number}")
            heads.append(self._scope.find(name, f"output {number} of the graph"))
        if not heads and self._nested:
            raise GraphError(f"nested graph {self._prefix[:-1]!r} has no outputs")
        graph = _core.Graph.build(self._scope.nodes, heads)
        if not self._nested:
            graph.check()
        return graph

    # Variables.

    def _read_inputs(self) -> None:
        inputs: dict[str, tuple[Any, int]] = {}
        for number, value in enumerate(self._proto.input):
            name = _text_of(value.name, f"{self._prefix}input.{number}")
            if name in inputs:
                raise GraphError(f"two inputs of the graph are named {name!r}")
            inputs[name] = (value, number)
        defaults = [
            _text_of(tensor.name, f"{self._prefix}initializer.{number}")
            for number, tensor in enumerate(self._proto.initializer)
        ]
        sparse = [
            _text_of(tensor.values.name, f"{self._prefix}sparse.{number}")
            for number, tensor in enumerate(self._proto.sparse_initializer)
        ]
        known = {*defaults, *sparse}
        for name, (value, number) in inputs.items():
            if name not in known:
                key = f"{self._prefix}input.{number}"
                self._document.inputs[key] = (value, number)
                self._scope.add_variable(name, {ID: key})
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
            # No array holds its data: put it back into the message.
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
        """Read a node Constant as a variable; return whether it has the form of a constant."""
        value = constants.value_of(node)
        if value is None:
            return False
        name = _text_of(node.output[0], f"node {key}")
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
        self._scope.add_variable(tensor.name, attrs)

    # Operators.

    def _read_node(self, node: Any, key: str) -> None:
        op = _text_of(node.op_type, f"node {key}")
        if not op or op == VARIABLE:
            raise FormatError(f"node {key} has operator {op!r}")
        name = self._name_node(_text_of(node.name, f"node {key}"), op, key)
        values = self._scope.values
        inputs = [
            values.get(value) or self._find_input(value, slot, name, op)
            for slot, value in enumerate(node.input[:])
        ]
        attrs = {ID: key}
        if domain := node.domain:
            attrs[DOMAIN] = _text_of(domain, name)
        if overload := node.overload:
            attrs[OVERLOAD] = _text_of(overload, name)
        graphs: list[_core.Graph] = []
        captured: dict[str, int] = {}
        for value in node.attribute[:]:
            label, text = self._attribute(value, key, name, len(graphs))
            if label in OWN_KEYS:
                raise UnsupportedError(
                    f"node {name!r} ({op}): attribute {label!r} has a name that passlib reserves"
                )
            if label in attrs:
                raise FormatError(f"node {name!r} ({op}): attribute {label!r} occurs twice")
            attrs[label] = text
            if text.startswith("subgraph["):
                enclosing = Enclosing(self._scope, len(inputs), captured)
                graphs += self._read_nested(value, f"{key}.{label}", enclosing)
        if node.metadata_props:
            for entry in node.metadata_props:
                if _is_mark(entry.key) and entry.key not in attrs:
                    attrs[entry.key] = _text_of(entry.value, name)
        if graphs:
            attrs[FORMAL], attrs[CAPTURED] = str(len(inputs)), str(len(captured))
            inputs += [self._scope.find(outside, name) for outside in captured]
        self._document.nodes[key] = OriginalNode(node, name, attrs)
        outputs = node.output[:]
        position = self._scope.add(op, name, attrs, inputs, len(outputs), graphs)
        for number, value in enumerate(outputs):
            if value:
                self._scope.define(_text_of(value, name), position, number)

    def _find_input(self, name: str, slot: int, user: str, op: str) -> Entry:
        return self._scope.find(_text_of(name, user), f"input {slot} of node {user!r} ({op})")

    def _read_nested(self, value: Any, place: str, enclosing: Enclosing) -> list[_core.Graph]:
        several = attributes.kind_of(value) == attributes.GRAPHS
        graphs = []
        for number, proto in enumerate(attributes.graphs_of(value)):
            inner = f"{place}[{number}]" if several else place
            self._document.graphs[inner] = proto
            graphs.append(_Level(self._reader, proto, f"{inner}.", enclosing).build())
        return graphs

    def _attribute(self, value: Any, key: str, node: str, graphs: int) -> tuple[str, str]:
        """Return name and text of an attribute. Most attributes of a model are repetitions."""
        known, data = self._reader.texts, b""
        if attribute_text.is_plain(value):
            data = value.SerializeToString()
            if data in known:
                return known[data]
        label = _text_of(value.name, node)
        found = label, attribute_text.to_text(value, f"{key}/{label}", graphs)
        if data:
            known[data] = found
        return found

    def _name_node(self, name: str, op: str, key: str) -> str:
        wish = name or f"{op}_{key}"
        while wish in self._node_names:
            wish = f"{wish}_{key}"
        self._node_names.add(wish)
        return wish


def _is_mark(key: Any) -> bool:
    """Whether metadata of a node is a mark that a pass left there."""
    return (
        isinstance(key, str)
        and len(key) > 4
        and key.startswith("__")
        and key.endswith("__")
        and key not in OWN_KEYS
    )


def _text_of(text: Any, place: str) -> str:
    """Return a string of the file.

    Raises
    ------
    FormatError
        It is not UTF-8, or has a zero in it.
    """
    if not isinstance(text, str) or "\0" in text:
        raise FormatError(f"{place}: {text!r} is not a name in UTF-8")
    return text
