"""Attributes of a node as AttributeProtos: those that did not change are the ones of the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from passlib._core import NodeTuple
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import GRAPH, GRAPHS, graphs_of, is_graph, kind_of
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.keys import DOMAIN, OWN_KEYS
from passlib.dialects.onnx.messages import copy_of
from passlib.dialects.onnx.originals import OriginalNode
from passlib.dialects.onnx.writing.nodes import attribute_parser
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.graph.attribute_text import parse_position

__all__ = ["AttributeWriter", "GraphOf", "is_own"]

GraphOf = Callable[[int, Any], Any]
"""Writes a nested graph of a node by its number, given that of the file or None."""


class AttributeWriter:
    """Makes the attributes of nodes.

    Parameters
    ----------
    document : Document
    imports : mapping of str to int
        Versions of the operator sets, for the types of new attributes.
    """

    def __init__(self, document: Document, imports: Mapping[str, int]) -> None:
        self._document = document
        self._imports = {schema.plain(domain): number for domain, number in imports.items()}

    def write(
        self, node: NodeTuple, original: OriginalNode | None, graph_of: GraphOf
    ) -> tuple[list[Any], bool]:
        """Make the attributes of a node.

        Parameters
        ----------
        node : NodeTuple
        original : OriginalNode, optional
            The node in the file.
        graph_of : callable

        Returns
        -------
        attributes : list of onnx.AttributeProto
        changed : bool
            Whether any of them is not the one of the file.

        Raises
        ------
        GraphError, UnsupportedError
            The node's attributes have no form in ONNX.
        """
        attrs = node.attrs
        old = {} if original is None else original.values
        texts = {} if original is None else original.attrs
        if not node.subgraphs and original is not None and attrs == texts:
            return list(old.values()), False
        graphs = _NestedGraphs(node, graph_of)
        written: list[Any] = []
        changed = False
        for key in (*old, *sorted(attrs.keys() - old.keys())):
            text, was = attrs.get(key), old.get(key)
            if text is None:
                changed = True
                continue
            if key in OWN_KEYS or (was is None and is_own(key)):
                continue
            value = graphs.write(key, text, was)
            if value is None:
                same = was is not None and text == texts.get(key)
                value = was if same else self._value(node, key, text, was)
            changed = changed or value is not was
            written.append(value)
        graphs.finish()
        return written, changed

    def _value(self, node: NodeTuple, key: str, text: str, old: Any) -> Any:
        """Make an attribute from its new text."""
        place = _reference_of(text)
        if place is not None:
            found = self._document.attribute(place)
            if found is None:
                raise UnsupportedError(
                    f"node {node.name!r} ({node.op}): attribute {key!r} refers to {place!r}, "
                    "which the file does not have"
                )
            copy = copy_of(found)
            copy.name = key
            return copy
        kind = kind_of(old) if old is not None and not old.ref_attr_name else 0
        if not kind:
            domain = schema.plain(node.attrs.get(DOMAIN, ""))
            version = self._imports.get(domain, 0) or schema.newest_version(domain, 1 << 30)
            kind = schema.attribute_types(node.op, domain, version).get(key, 0)
        return attribute_parser.parse(key, text, kind, f"node {node.name!r} ({node.op})")


class _NestedGraphs:
    """The nested graphs of one node; each must be in exactly one attribute."""

    def __init__(self, node: NodeTuple, graph_of: GraphOf) -> None:
        self._node = node
        self._graph_of = graph_of
        self._used: set[int] = set()

    def write(self, key: str, text: str, old: Any) -> Any:
        """Make an attribute that holds nested graphs; None if the attribute does not."""
        node = self._node
        numbers = _graph_numbers(text)
        if numbers is None or (old is not None and not is_graph(old)):
            return None
        if any(number >= len(node.subgraphs) for number in numbers) or self._used & set(numbers):
            raise GraphError(
                f"attribute {key!r} of node {node.name!r} ({node.op}) refers to a nested graph "
                f"that is missing or in another attribute; the node has {len(node.subgraphs)}"
            )
        self._used.update(numbers)
        before: list[Any] = [] if old is None else graphs_of(old)
        graphs = [
            self._graph_of(number, before[i] if i < len(before) else None)
            for i, number in enumerate(numbers)
        ]
        kept = len(graphs) == len(before) and all(
            new is was for new, was in zip(graphs, before, strict=True)
        )
        if old is not None and kept:
            return old
        made: Any = require("onnx", extra="onnx").AttributeProto(name=key)
        if old is not None:
            made.CopyFrom(old)
            made.ClearField("g")
            made.ClearField("graphs")
        if ":" in text or (old is not None and kind_of(old) == GRAPHS):
            made.type = GRAPHS
            made.graphs.extend(graphs)
        else:
            made.type = GRAPH
            made.g.CopyFrom(graphs[0])
        return made

    def finish(self) -> None:
        """Check that every nested graph is in an attribute.

        Raises
        ------
        GraphError
            One is not.
        """
        node = self._node
        unused = set(range(len(node.subgraphs))) - self._used
        if unused:
            raise GraphError(
                f"no attribute of node {node.name!r} ({node.op}) refers to its nested graph "
                f"{min(unused)}: set the attribute it belongs to to 'subgraph[{min(unused)}]'"
            )


def is_own(key: str) -> bool:
    """Whether the name of an attribute is that of passlib or of a pass: ``__mark__``."""
    return key.startswith("__") and key.endswith("__")


def _graph_numbers(text: str) -> range | None:
    """Read ``subgraph[0]`` or ``subgraph[0:2]``."""
    if not text.startswith("subgraph[") or not text.endswith("]"):
        return None
    first, colon, last = text[len("subgraph[") : -1].partition(":")
    start = parse_position(first)
    if start is None:
        return None
    end = parse_position(last) if colon else start + 1
    return None if end is None else range(start, end)


def _reference_of(text: str) -> str | None:
    """Return the place of the attribute that a text refers to; None if it states the value."""
    if '"same_as"' not in text:
        return None
    try:
        described = json.loads(text)
    except (ValueError, RecursionError):
        return None
    while isinstance(described, list) and described:
        described = described[0]
    if isinstance(described, dict) and "values" in described:
        described = described["values"]
    place = described.get("same_as") if isinstance(described, dict) else None
    return place.partition("[")[0] if isinstance(place, str) else None
