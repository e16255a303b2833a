"""Graphs as GraphProtos, nested ones included: those without changes are the ones of the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from passlib import _core
from passlib._core import NodeTuple
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.keys import ABSENT, CAPTURED, FORMAL, ID, INPUTS_ALSO, OUTER
from passlib.dialects.onnx.messages import copy_of
from passlib.dialects.onnx.writing.annotations import describe_outputs, keep_annotations
from passlib.dialects.onnx.writing.level import Level, Surroundings
from passlib.dialects.onnx.writing.naming import Names, choose_names
from passlib.dialects.onnx.writing.nodes.node import NodeNames, NodeWriter
from passlib.dialects.onnx.writing.outputs import Present
from passlib.dialects.onnx.writing.settled import SettledValues
from passlib.dialects.onnx.writing.variables import LevelVariables
from passlib.errors import GraphError
from passlib.files.optional import require
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE
from passlib.lowering.types import TypeSpec

__all__ = ["GraphWriter", "Written"]


class Written(NamedTuple):
    """A graph as it is written.

    Attributes
    ----------
    proto : onnx.GraphProto
        That of the file itself if nothing differs.
    names : Names
    variables : LevelVariables
        With the arrays that are not in ``proto``.
    """

    proto: Any
    names: Names
    variables: LevelVariables


class GraphWriter:
    """Writes the graphs of one model.

    Parameters
    ----------
    document : Document
    imports : mapping of str to int
        Versions of the operator sets.

    Attributes
    ----------
    document : Document
    nodes : NodeWriter
    source : NameSource
        Names that no value of the model has.
    doubtful : set of str
        Names of values whose types may have changed.
    """

    def __init__(self, document: Document, imports: Mapping[str, int]) -> None:
        self.document = document
        self.nodes = NodeWriter(document, imports)
        self.source = NameSource(set(document.names))
        self.doubtful: set[str] = set()
        self._taken: set[str] = set()

    def write_main(
        self,
        graph: _core.Graph,
        params: Mapping[str, np.ndarray[Any, Any]],
        fed: Mapping[str, TypeSpec],
        present: Present,
    ) -> Written:
        """Write the main graph.

        Parameters
        ----------
        graph : _core.Graph
        params : mapping of str to numpy.ndarray
        fed : mapping of str to TypeSpec
            Variables that become inputs, whatever they are in the file.
        present : Present
            The outputs that those of the graph are compared with.

        Raises
        ------
        GraphError, UnsupportedError
            The graph, or a value in it, has no form in ONNX.
        """
        original = self.document.model.graph
        level = Level(graph, self.document, original, self._taken, present=present)
        return _LevelWriter(self, level, params, fed).write()

    def write_nested(self, graph: _core.Graph, original: Any, around: Surroundings) -> Any:
        """Write a nested graph as a GraphProto, given that of the file or None."""
        level = Level(graph, self.document, original, self._taken, around)
        return _LevelWriter(self, level, {}, {}).write().proto


class _LevelWriter:
    """Writes one graph."""

    def __init__(
        self,
        writer: GraphWriter,
        level: Level,
        params: Mapping[str, np.ndarray[Any, Any]],
        fed: Mapping[str, TypeSpec],
    ) -> None:
        self._writer = writer
        self._level = level
        self._names = choose_names(level, writer.source)
        self._variables = LevelVariables(level, self._names, params, fed)
        self._settled = SettledValues(level)
        self._hidden = self._hidden_inside()
        self._titles = level.titles()

    def write(self) -> Written:
        protos = self._write_nodes()
        level, names, variables = self._level, self._names, self._variables
        doubtful = self._writer.doubtful
        initializers = variables.initializers()
        origins = self._settled.origins(level.heads)
        outputs = describe_outputs(level, names, origins, initializers, doubtful)
        fields = {
            "node": protos,
            "input": variables.inputs(with_new=level.document.model.ir_version < INPUTS_ALSO),
            "output": outputs,
            "initializer": initializers,
            "sparse_initializer": variables.sparse(),
            **keep_annotations(level, names, variables.changed, self._settled, doubtful),
        }
        return Written(_with_fields(level.template, fields), names, variables)

    def _write_nodes(self) -> list[Any]:
        settled, variables = self._settled, self._variables
        protos: list[Any] = []
        for position in self._level.order():
            node = self._level.nodes[position]
            if node.op == VARIABLE:
                if node.name != ABSENT and OUTER not in node.attrs:
                    constant = variables.add(position)
                    if constant is not None:
                        protos.append(constant)
                settled.add_variable(position, variables)
            else:
                proto = self._write_node(position, node)
                protos.append(proto)
                settled.add_operator(position, proto)
        for value, output in self._names.copies:
            title = self._writer.source.fresh(f"{output}_copy")
            made: Any = require("onnx", extra="onnx").NodeProto
            protos.append(made(op_type="Identity", name=title, input=[value], output=[output]))
            self._writer.nodes.domains.add("")
        return protos

    def _write_node(self, position: int, node: NodeTuple) -> Any:
        of = self._names.of
        inputs = [of[entry[0], entry[1]] for entry in node.inputs]
        formal = _formal(node) if node.subgraphs else len(inputs)
        outputs: list[str] = []
        while (position, len(outputs)) in of:
            outputs.append(of[position, len(outputs)])

        def write_nested(number: int, original: Any) -> Any:
            around = Surroundings(inputs, self._settled.origins(node.inputs), self._hidden)
            return self._writer.write_nested(node.subgraphs[number], original, around)

        return self._writer.nodes.write(
            node,
            self._level.original(position),
            NodeNames(self._titles[position], inputs[:formal], outputs),
            write_nested,
        )

    def _hidden_inside(self) -> frozenset[str]:
        """Return the names that nested graphs must not give to values of their own."""
        hidden = self._level.around.hidden
        if not any(node.subgraphs for node in self._level.nodes):
            return hidden
        return hidden | {
            name
            for (position, output), name in self._names.of.items()
            if name != _old_name(self._level.nodes[position], output, self._level.document)
        }


def _with_fields(template: Any, fields: Mapping[str, Sequence[Any]]) -> Any:
    """Return a GraphProto with other lists; the template itself if nothing differs."""
    different = [
        key for key, items in fields.items() if not _same_items(items, getattr(template, key))
    ]
    if not different:
        return template
    made = copy_of(template)
    for key in different:
        field = getattr(made, key)
        del field[:]
        field.extend(fields[key])
    return made


def _same_items(new: Sequence[Any], old: Sequence[Any]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def _old_name(node: NodeTuple, output: int, document: Document) -> str | None:
    """Return the name in the file of a value, or of the value that it is a copy of."""
    key = node.attrs.get(ID, "")
    if node.op == VARIABLE:
        if key in document.inputs:
            return str(document.inputs[key][0].name)
        return document.tensors[key].name if key in document.tensors else None
    original = document.nodes.get(key)
    if original is None or output >= len(original.proto.output):
        return None
    return str(original.proto.output[output])


def _formal(node: NodeTuple) -> int:
    """Return how many inputs of a node with nested graphs are the operator's own."""
    inputs = len(node.inputs)
    stated, captured = node.attrs.get(FORMAL), node.attrs.get(CAPTURED, "0")
    if stated is None:
        return inputs
    try:
        counts = int(stated), int(captured)
    except ValueError:
        counts = -1, 0
    if min(counts) < 0 or sum(counts) != inputs:
        raise GraphError(
            f"node {node.name!r} ({node.op}) has {inputs} inputs, but its attributes {FORMAL} and "
            f"{CAPTURED} are {stated} and {captured}; a pass that adds or removes inputs of a "
            "node with nested graphs must update them"
        )
    return counts[0]
