"""Graphs as ONNX models: what no pass changed is written as it stood in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx import opsets, variables
from passlib.dialects.onnx.assembly import describe_outputs, make_graph
from passlib.dialects.onnx.document import (
    ABSENT,
    CAPTURED,
    FORMAL,
    ID,
    INPUTS_ALSO,
    OUTER,
    Document,
    OriginalNode,
)
from passlib.dialects.onnx.naming import Names, choose_names
from passlib.dialects.onnx.nodes import NodeWriter
from passlib.dialects.onnx.order import file_order
from passlib.dialects.onnx.settled import SettledValues
from passlib.dialects.onnx.types import renew_types
from passlib.dialects.onnx.unchanged import arrays_aside, is_unchanged
from passlib.errors import GraphError, UnsupportedError
from passlib.files.collector import collection_off
from passlib.files.optional import require
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.lowering.types import TypeSpec

__all__ = ["Assembled", "assemble", "assemble_for_file", "main_names"]

_WITHIN = re.compile(r"\.(?:(?:input|initializer|sparse)\.)?\d+$")
"""What an `ID` has behind the place of the nested graph."""


@dataclass
class Assembled:
    """A model ready to be written.

    Attributes
    ----------
    model : onnx.ModelProto
        That of the document itself if there are no ``arrays`` and no other files to write.
    arrays : dict of int to numpy.ndarray
        Values of initializers of the main graph that are not in the message, by number.
    external : dict of int to bool
        Those of ``arrays`` that stand in a file beside the model, and whether they changed.
    names : Names
        Of the values of the main graph.
    """

    model: Any
    arrays: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    external: dict[int, bool] = field(default_factory=dict)
    names: Names = field(default_factory=Names)


def assemble(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: Mapping[str, np.ndarray[Any, Any]],
    fed: Mapping[str, TypeSpec] | None = None,
) -> Assembled:
    """Make the model of a graph.

    Parameters
    ----------
    graph : _core.Graph
    attributes : mapping of str to str
        The graph's own, as JSON by key.
    document : Document
        The file that the graph came from.
    params : mapping of str to numpy.ndarray
    fed : mapping of str to TypeSpec, optional
        Variables that are inputs of the model, whatever the file says.

    Returns
    -------
    Assembled

    Raises
    ------
    GraphError, UnsupportedError
        The graph, or a value in it, has no form in ONNX.
    """
    with collection_off():
        return _ModelWriter(graph, attributes, document, params, fed or {}).write()


def assemble_for_file(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: Mapping[str, np.ndarray[Any, Any]],
) -> Assembled:
    """Make the model of a graph where nobody asks for the names of its values.

    Parameters and errors are those of `assemble`.

    Returns
    -------
    Assembled
        Without ``names``.
    """
    same_imports = _imports(attributes, document) == _imports({}, document)
    if not same_imports or not is_unchanged(graph, document, params):
        return assemble(graph, attributes, document, params)
    arrays, external = arrays_aside(document)
    if not arrays and not document.has_external:
        return Assembled(document.model)  # there is nothing to change when it is written
    model = type(document.model)()
    model.CopyFrom(document.model)
    return Assembled(model, arrays, external)


class _ModelWriter:
    def __init__(
        self,
        graph: _core.Graph,
        attributes: Mapping[str, str],
        document: Document,
        params: Mapping[str, np.ndarray[Any, Any]],
        fed: Mapping[str, TypeSpec],
    ) -> None:
        self._graph = graph
        self._fed = fed
        self._document = document
        self._params = params
        self._claimed: set[str] = set()
        self._source = NameSource(set(document.names))
        self._onnx: Any = require("onnx", extra="onnx")
        self._imports = _imports(attributes, document)
        self._nodes = NodeWriter(document, self._imports or {"": 1})
        self._result = Assembled(None)
        self._doubtful: set[str] = set()

    def write(self) -> Assembled:
        model = self._onnx.ModelProto()
        model.CopyFrom(self._document.model)
        graph = self._level(self._graph, self._document.model.graph, (), set(), main=True)
        if graph is not self._document.model.graph:
            model.graph.CopyFrom(graph)
        self._write_imports(model)
        renew_types(model, self._doubtful)
        self._result.model = model
        return self._result

    def _write_imports(self, model: Any) -> None:
        present = {entry.domain: entry for entry in model.opset_import}
        for domain, version in self._imports.items():
            if domain in present:
                if present[domain].version != version:
                    present[domain].version = version
            else:
                model.opset_import.add(domain=domain, version=version)
        known = {opsets.plain(domain) for domain in self._imports}
        for domain in sorted(self._nodes.domains):
            if opsets.plain(domain) not in known:
                known.add(opsets.plain(domain))
                if model.ir_version < opsets.NAMED_SINCE and not model.opset_import:
                    _refuse_unnamed(domain, model.ir_version)
                    continue
                version = opsets.newest_version(domain, model.ir_version)
                model.opset_import.add(domain=domain, version=version)

    def _level(
        self,
        graph: _core.Graph,
        original: Any,
        around: Sequence[str],
        hidden: set[str],
        origins: Sequence[str | None] = (),
        *,
        main: bool = False,
    ) -> Any:
        """Make one GraphProto; that of the file itself if nothing differs."""
        nodes, heads = graph.nodes(), graph.heads()
        claims = _claims(nodes, self._document, self._claimed)
        template = self._onnx.GraphProto(name="graph") if original is None else original
        like = self._origin(nodes) if original is None else None
        names = choose_names(
            nodes,
            heads,
            self._document,
            claims,
            output_names=[value.name for value in template.output],
            around=around,
            hidden=hidden,
            source=self._source,
        )
        level = variables.LevelVariables(
            self._document, self._params if main else {}, self._fed if main else {}, names
        )
        settled = SettledValues(self._document, origins, template)
        protos: list[Any] = []
        inner = self._hidden_inside(nodes, names, hidden)
        titles = _titles(nodes, claims, self._document)
        for position in file_order(nodes, _places(claims, self._document)):
            node = nodes[position]
            key = claims.get(position, "")
            if node[0] == VARIABLE:
                if node[1] != ABSENT and OUTER not in node[2]:
                    constant = level.add(position, node, key)
                    if constant is not None:
                        protos.append(constant)
                settled.add_variable(position, node, key, level)
            else:
                original = self._original(key)
                protos.append(
                    self._node(
                        node, position, original, titles, names, inner, settled.origins(node[3])
                    )
                )
                settled.add_operator(position, node, original, protos[-1])
        for value, output in names.copies:
            wish = self._source.fresh(f"{output}_copy")
            protos.append(
                self._onnx.NodeProto(op_type="Identity", name=wish, input=[value], output=[output])
            )
            self._nodes.domains.add("")
        if main:
            self._result.arrays, self._result.external = level.arrays()
            self._result.names = names
        inputs = level.inputs(new_ones_too=main and self._document.model.ir_version < INPUTS_ALSO)
        outputs = describe_outputs(
            template, names, like, settled.origins(heads), level.initializers(), self._doubtful
        )
        return make_graph(
            template,
            protos,
            inputs,
            outputs,
            level,
            names,
            nodes,
            claims,
            self._document,
            settled,
            self._doubtful,
        )

    def _origin(self, nodes: Sequence[NodeTuple]) -> Any:
        """Find the nested graph of the file that one without an owner there is a copy of."""
        for node in nodes:
            place = _WITHIN.sub("", node[2].get(ID, ""))
            if place in self._document.graphs:
                return self._document.graphs[place]
        return None

    def _original(self, key: str) -> OriginalNode | None:
        return self._document.nodes.get(key)

    def _hidden_inside(
        self, nodes: Sequence[NodeTuple], names: Names, hidden: set[str]
    ) -> set[str]:
        """Collect the names that nested graphs must not give to values of their own."""
        if not any(node[6] for node in nodes):
            return hidden
        return hidden | {
            name
            for (position, output), name in names.of.items()
            if name != _old_name(nodes[position], output, self._document)
        }

    def _node(
        self,
        node: NodeTuple,
        position: int,
        original: OriginalNode | None,
        titles: Mapping[int, str],
        names: Names,
        hidden: set[str],
        origins: Sequence[str | None],
    ) -> Any:
        values = [names.of[entry[0], entry[1]] for entry in node[3]]
        formal = _formal(node) if node[6] else len(values)
        outputs: list[str] = []
        while (position, len(outputs)) in names.of:
            outputs.append(names.of[position, len(outputs)])
        return self._nodes.write(
            node,
            original,
            titles[position],
            values[:formal],
            outputs,
            lambda number, was: self._level(node[6][number], was, values, hidden, origins),
        )


def _claims(nodes: Sequence[NodeTuple], document: Document, taken: set[str]) -> dict[int, str]:
    """Find out which nodes stand for one of the file: of two, the first in the graph."""
    claims = {}
    for position, node in enumerate(nodes):
        key = node[2].get(ID)
        if key is None or key in taken:
            continue
        known = (
            key in document.inputs or key in document.tensors
            if node[0] == VARIABLE
            else key in document.nodes
        )
        if known:
            taken.add(key)
            claims[position] = key
    return claims


def _titles(
    nodes: Sequence[NodeTuple], claims: Mapping[int, str], document: Document
) -> dict[int, str]:
    """Name the operators: as in the file, and new ones apart, for ONNX Runtime tells by names."""
    titles = {}
    for position, key in claims.items():
        original = document.nodes.get(key)
        if original is not None and nodes[position][1] == original.name:
            titles[position] = str(original.proto.name)
    source = NameSource(set(titles.values()))
    for position, node in enumerate(nodes):
        if node[0] != VARIABLE and position not in titles:
            titles[position] = source.fresh(node[1]) if node[1] else ""
    return titles


def _places(claims: Mapping[int, str], document: Document) -> dict[int, int]:
    """Give the numbers that nodes have in the file; inputs and initializers are no nodes there."""
    return {
        position: int(key.rpartition(".")[2])
        for position, key in claims.items()
        if key in document.nodes
        or (key in document.tensors and document.tensors[key].kind == "constant")
    }


def main_names(graph: _core.Graph, document: Document) -> Names:
    """Name the values of a main graph as `assemble` does."""
    nodes = graph.nodes()
    return choose_names(
        nodes,
        graph.heads(),
        document,
        _claims(nodes, document, set()),
        output_names=[value.name for value in document.model.graph.output],
        around=(),
        hidden=set(),
        source=NameSource(set(document.names)),
    )


def _refuse_unnamed(domain: str, ir_version: int) -> None:
    if opsets.plain(domain):
        raise UnsupportedError(
            f"files of IR version {ir_version} cannot name operator sets, so they have no "
            f"operators of {domain!r}"
        )


def _imports(attributes: Mapping[str, str], document: Document) -> dict[str, int]:
    """Read the versions of operator sets; those that a pass set win over the file's."""
    imports = {entry.domain: int(entry.version) for entry in document.model.opset_import}
    text = attributes.get("opset_import")
    if text is None:
        return imports
    try:
        given = json.loads(text)
        return {**imports, **{str(domain): int(version) for domain, version in given.items()}}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise GraphError(
            f"the graph's attribute opset_import is {text[:80]}; it must be a JSON object of "
            "versions by domain"
        ) from None


def _old_name(node: NodeTuple, output: int, document: Document) -> str | None:
    if node[0] == VARIABLE:
        key = node[2].get(ID, "")
        if key in document.inputs:
            return str(document.inputs[key][0].name)
        return document.tensors[key].name if key in document.tensors else None
    original = document.nodes.get(node[2].get(ID, ""))
    if original is None or output >= len(original.proto.output):
        return None
    return str(original.proto.output[output])


def _formal(node: NodeTuple) -> int:
    """Count the inputs of a node with nested graphs that are the operator's own."""
    attrs, inputs = node[2], len(node[3])
    texts = (attrs.get(FORMAL), attrs.get(CAPTURED, "0"))
    if texts[0] is None:
        return inputs
    try:
        formal, captured = int(texts[0] or ""), int(texts[1] or "")
    except ValueError:
        formal, captured = -1, 0
    if formal < 0 or captured < 0 or formal + captured != inputs:
        raise GraphError(
            f"node {node[1]!r} ({node[0]}) has {inputs} inputs, but its attributes {FORMAL} and "
            f"{CAPTURED} say {texts[0]} and {texts[1]}; a pass that adds or removes inputs of a "
            "node with nested graphs sets them"
        )
    return formal
