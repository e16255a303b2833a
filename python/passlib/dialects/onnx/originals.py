"""The messages of an ONNX file, and how they belong to the nodes of its graph."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from passlib import _core
from passlib._core import NodeTuple
from passlib.dialects.onnx.attributes import GRAPHS, graphs_of, is_graph, kind_of
from passlib.dialects.onnx.external import EXTERNAL
from passlib.dialects.onnx.keys import ID
from passlib.dialects.onnx.parsing import parse_model
from passlib.graph.node import VARIABLE

__all__ = ["OriginalNode", "OriginalTensor", "Originals"]


class OriginalNode(NamedTuple):
    """A node as it is in the file, and as passes saw it.

    Attributes
    ----------
    proto : onnx.NodeProto
    name : str
        The name that passes see.
    attrs : mapping of str to str
        The attributes that passes see.
    """

    proto: Any
    name: str
    attrs: Mapping[str, str]

    @property
    def values(self) -> dict[str, Any]:
        """The node's attributes in the file, each an onnx.AttributeProto, by name."""
        return {value.name: value for value in self.proto.attribute}


class OriginalTensor(NamedTuple):
    """A constant as it is in the file.

    Attributes
    ----------
    kind : {"initializer", "sparse", "constant"}
    proto : onnx.TensorProto, onnx.SparseTensorProto or onnx.NodeProto
    name : str
    array : numpy.ndarray or None
        The elements; None if NumPy cannot represent them, and in nested graphs.
    order : int
        Its number among the constants of its kind in its graph.
    detached : bool
        Whether ``proto`` lacks the raw data, which is only in ``array``.
    external : bool
        Whether the data is in another file.
    input : (onnx.ValueInfoProto, int) or None
        The graph input whose default it is, and the input's number.
    """

    kind: str
    proto: Any
    name: str
    array: np.ndarray[Any, Any] | None
    order: int
    detached: bool = False
    external: bool = False
    input: tuple[Any, int] | None = None


@dataclass
class Originals:
    """The messages of a file.

    Attributes
    ----------
    model : onnx.ModelProto
        Without the larger weights.
    nodes : dict of str to OriginalNode
        Operators by `ID`, nested graphs included.
    inputs : dict of str to (onnx.ValueInfoProto, int)
        The inputs of graphs with their numbers, by `ID`.
    tensors : dict of str to OriginalTensor
        Initializers and constant nodes, by `ID`.
    names : set of str
        All names of values, nested graphs included.
    graphs : dict of str to onnx.GraphProto
        The nested graphs by place: ``12.body``.
    """

    model: Any
    nodes: dict[str, OriginalNode] = field(default_factory=dict)
    inputs: dict[str, tuple[Any, int]] = field(default_factory=dict)
    tensors: dict[str, OriginalTensor] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    graphs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        data: mmap.mmap | bytes,
        graph: _core.Graph,
        arrays: Mapping[str, np.ndarray[Any, Any]],
    ) -> Originals:
        """Parse a file, and tie its messages to the graph that was read from it.

        Parameters
        ----------
        data : mmap.mmap or bytes
        graph : _core.Graph
        arrays : mapping of str to numpy.ndarray
            Constants of the main graph that passes see as arrays.

        Raises
        ------
        FormatError
            The package onnx does not parse the file.
        """
        model, payloads = parse_model(data)
        detached = set()
        for number, payload in payloads.items():
            tensor = model.graph.initializer[number]
            if tensor.name in arrays and tensor.data_location != EXTERNAL:
                detached.add(number)
            else:  # no array holds its data
                tensor.raw_data = payload.tobytes()
        made = cls(model)
        made._add_level(_Level(model.graph, graph, "", arrays, detached))
        return made

    def _add_level(self, first: _Level) -> None:
        pending = [first]
        while pending:
            level = pending.pop()
            nodes = level.proto.node[:]
            tensors = _Tensors(level)
            for node in level.graph.nodes():
                key = node.attrs.get(ID)
                if key is None:
                    continue  # stands for an omitted input, or for a value from outside
                what, _, number = key.removeprefix(level.prefix).rpartition(".")
                place = int(number)
                if node.op != VARIABLE:
                    proto = nodes[place]
                    self.nodes[key] = OriginalNode(proto, node.name, node.attrs)
                    self.names.update(filter(None, proto.output))
                    pending += self._nested(node, proto, key)
                    continue
                self.names.add(node.name)
                if what == "input":
                    self.inputs[key] = (level.proto.input[place], place)
                elif what:
                    self.tensors[key] = tensors.of(what, place, node.name)
                else:
                    array = level.arrays.get(node.name)
                    self.tensors[key] = OriginalTensor(
                        "constant", nodes[place], node.name, array, place
                    )

    def _nested(self, node: NodeTuple, proto: Any, key: str) -> Iterator[_Level]:
        subgraphs = iter(node.subgraphs)
        for value in proto.attribute if node.subgraphs else ():
            if not is_graph(value) or value.ref_attr_name:
                continue
            several = kind_of(value) == GRAPHS
            for number, graph in enumerate(graphs_of(value)):
                place = f"{key}.{value.name}" + (f"[{number}]" if several else "")
                self.graphs[place] = graph
                yield _Level(graph, next(subgraphs), f"{place}.", {}, set())


class _Level(NamedTuple):
    """One graph: its message, its native form, and what the `ID` of each node starts with."""

    proto: Any
    graph: _core.Graph
    prefix: str
    arrays: Mapping[str, np.ndarray[Any, Any]]
    detached: set[int]


class _Tensors:
    """Makes the tensors of one graph."""

    def __init__(self, level: _Level) -> None:
        self._level = level
        self._inputs = {
            value.name: (value, number) for number, value in enumerate(level.proto.input)
        }
        self._dense = level.proto.initializer[:]

    def of(self, kind: str, number: int, name: str) -> OriginalTensor:
        given = self._inputs.get(name)
        if kind == "sparse":
            proto = self._level.proto.sparse_initializer[number]
            return OriginalTensor(kind, proto, name, None, number, input=given)
        proto = self._dense[number]
        return OriginalTensor(
            kind,
            proto,
            name,
            self._level.arrays.get(name),
            number,
            detached=number in self._level.detached,
            external=proto.data_location == EXTERNAL,
            input=given,
        )
