"""Graphs as ONNX models: what no pass changed is written as it is in the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.messages import copy_of
from passlib.dialects.onnx.writing.graphs import GraphWriter
from passlib.dialects.onnx.writing.level import Level
from passlib.dialects.onnx.writing.naming import Names, choose_names
from passlib.dialects.onnx.writing.outputs import present_outputs
from passlib.dialects.onnx.writing.types import renew_types
from passlib.dialects.onnx.writing.unchanged import arrays_aside, is_unchanged
from passlib.errors import GraphError, UnsupportedError
from passlib.files.collector import collection_off
from passlib.graph.fresh_names import NameSource
from passlib.lowering.types import TypeSpec

__all__ = ["Assembled", "as_in_file", "assemble", "assemble_for_file", "main_names"]


@dataclass
class Assembled:
    """A model ready to be written.

    Attributes
    ----------
    model : onnx.ModelProto
    arrays : dict of int to numpy.ndarray
        Values of initializers of the main graph that are not in the message, by number.
    external : dict of int to bool
        Those of ``arrays`` that are in a file next to the model, and whether they changed.
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
        Variables that become inputs, whatever they are in the file.

    Returns
    -------
    Assembled

    Raises
    ------
    GraphError, UnsupportedError
        The graph, or a value in it, has no form in ONNX.
    """
    with collection_off():
        imports = _imports(attributes, document)
        writer = GraphWriter(document, imports or {"": 1})
        model = copy_of(document.model)
        written = writer.write_main(graph, params, fed or {}, present_outputs(attributes))
        if written.proto is not document.model.graph:
            model.graph.CopyFrom(written.proto)
        _write_imports(model, imports, writer.nodes.domains)
        renew_types(model, writer.doubtful)
        return Assembled(model, *written.variables.arrays(), written.names)


def assemble_for_file(
    graph: _core.Graph,
    attributes: Mapping[str, str],
    document: Document,
    params: Mapping[str, np.ndarray[Any, Any]],
) -> Assembled | None:
    """Make the model of a graph, unless it is the file's.

    Parameters and errors are those of `assemble`.

    Returns
    -------
    Assembled or None
        None if nothing changed.
    """
    same_imports = _imports(attributes, document) == _imports({}, document)
    if not same_imports or not is_unchanged(graph, document, params):
        return assemble(graph, attributes, document, params)
    return None


def as_in_file(document: Document) -> Assembled:
    """Return the model of a file as messages, without the names of its values."""
    return Assembled(copy_of(document.model), *arrays_aside(document))


def main_names(graph: _core.Graph, attributes: Mapping[str, str], document: Document) -> Names:
    """Name the values of a main graph as `assemble` does."""
    present = present_outputs(attributes)
    level = Level(graph, document, document.model.graph, set(), present=present)
    return choose_names(level, NameSource(set(document.names)))


def _imports(attributes: Mapping[str, str], document: Document) -> dict[str, int]:
    """Return the versions of operator sets: those that a pass set, else the file's."""
    imports = dict(document.imports)
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


def _write_imports(model: Any, imports: Mapping[str, int], needed: set[str]) -> None:
    """Set the versions of operator sets, and import the needed ones that are missing."""
    present = {entry.domain: entry for entry in model.opset_import}
    for domain, version in imports.items():
        if domain in present:
            if present[domain].version != version:
                present[domain].version = version
        else:
            model.opset_import.add(domain=domain, version=version)
    known = {schema.plain(domain) for domain in imports}
    for domain in sorted(needed):
        if schema.plain(domain) not in known:
            known.add(schema.plain(domain))
            if model.ir_version < schema.NAMED_SINCE and not model.opset_import:
                _refuse_unnamed(domain, model.ir_version)
                continue
            version = schema.newest_version(domain, model.ir_version)
            model.opset_import.add(domain=domain, version=version)


def _refuse_unnamed(domain: str, ir_version: int) -> None:
    if schema.plain(domain):
        raise UnsupportedError(
            f"files of IR version {ir_version} cannot name operator sets, so they cannot have "
            f"operators of {domain!r}"
        )
