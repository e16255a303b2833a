"""Nodes of a graph as NodeProtos: those that did not change are the ones of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passlib.dialects.onnx import attribute_parser, attributes, opsets
from passlib.dialects.onnx.document import DOMAIN, OVERLOAD, OWN_KEYS, Document, OriginalNode
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.graph.attribute_text import parse_position

if TYPE_CHECKING:
    from passlib._core import NodeTuple

__all__ = ["NodeWriter"]

GraphOf = Callable[[int, Any], Any]
"""Writes nested graph number k, given that of the file or None."""


class NodeWriter:
    """Makes NodeProtos.

    Parameters
    ----------
    document : Document
    imports : mapping of str to int
        Versions of the operator sets, for the types of new attributes.
    """

    def __init__(self, document: Document, imports: Mapping[str, int]) -> None:
        self._document = document
        self._imports = {opsets.plain(domain): number for domain, number in imports.items()}
        self._proto: Any = require("onnx", extra="onnx").NodeProto
        self.domains: set[str] = set()
        """Operator sets that written nodes need."""

    def write(
        self,
        node: NodeTuple,
        original: OriginalNode | None,
        name: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        graph_of: GraphOf,
    ) -> Any:
        """Make the NodeProto of a node.

        Parameters
        ----------
        node
            As `_core.Graph` gives it.
        original : OriginalNode, optional
            What it was in the file.
        name : str
            What it is called now.
        inputs, outputs : sequence of str
            Names of its values.
        graph_of : callable

        Returns
        -------
        onnx.NodeProto
            That of the file itself if nothing differs.

        Raises
        ------
        GraphError, UnsupportedError
            The node's attributes are no attributes of ONNX.
        """
        op, attrs = node[0], node[2]
        same_op = original is not None and original.proto.op_type == op
        if original is not None and same_op:
            proto = original.proto
            same = (
                attrs == original.attrs
                and inputs == proto.input[:]
                and outputs == proto.output[:]
                and name == proto.name
            )
            if same and not node[6]:
                return proto
            values, changed = self._values(node, original, graph_of)
            if same and not changed:
                return proto
            made = self._proto()
            made.CopyFrom(proto)
            del made.input[:], made.output[:], made.attribute[:]
        else:
            values, _ = self._values(node, original, graph_of)
            made = self._proto()
        made.op_type = op
        if name or made.HasField("name"):
            made.name = name
        made.input.extend(inputs)
        made.output.extend(outputs)
        made.attribute.extend(values)
        _set_optional(made, "domain", attrs.get(DOMAIN, ""))
        _set_optional(made, "overload", attrs.get(OVERLOAD, ""))
        _set_marks(made, attrs)
        self.domains.add(made.domain)
        return made

    def _values(
        self, node: NodeTuple, original: OriginalNode | None, graph_of: GraphOf
    ) -> tuple[list[Any], bool]:
        """Make the attributes; whether any of them is not the file's."""
        attrs = node[2]
        old = {} if original is None else original.values
        texts = {} if original is None else original.attrs
        if not node[6] and original is not None and attrs == texts:
            return list(old.values()), False
        written: list[Any] = []
        changed = False
        used: set[int] = set()
        for key in (*old, *sorted(attrs.keys() - old.keys())):
            text = attrs.get(key)
            if text is None:
                changed = True
                continue
            if key in OWN_KEYS or (key not in old and key.startswith("__") and key.endswith("__")):
                continue
            value = self._value(node, key, text, old.get(key), texts.get(key), graph_of, used)
            changed = changed or value is not old.get(key)
            written.append(value)
        unused = set(range(len(node[6]))) - used
        if unused:
            raise GraphError(
                f"no attribute of node {node[1]!r} ({node[0]}) names its nested graph "
                f"{min(unused)}: set the one it is for to 'subgraph[{min(unused)}]'"
            )
        return written, changed

    def _value(
        self,
        node: NodeTuple,
        key: str,
        text: str,
        old: Any,
        old_text: str | None,
        graph_of: GraphOf,
        used: set[int],
    ) -> Any:
        graphs = _graph_numbers(text) if node[6] or "subgraph[" in text else None
        if graphs is not None and (old is None or _is_graph(old)):
            several = ":" in text or (
                old is not None and attributes.kind_of(old) == attributes.GRAPHS
            )
            return self._graphs(node, key, graphs, old, graph_of, used, several=several)
        if old is not None and text == old_text:
            return old
        place = attributes.reference_of(text)
        if place is not None:
            found = self._document.attribute(place)
            if found is None:
                raise UnsupportedError(
                    f"node {node[1]!r} ({node[0]}): attribute {key!r} stands for {place!r}, "
                    "which the file does not have"
                )
            copy = type(found)()
            copy.CopyFrom(found)
            copy.name = key
            return copy
        kind = attributes.kind_of(old) if old is not None and not old.ref_attr_name else 0
        if not kind:
            domain = opsets.plain(node[2].get(DOMAIN, ""))
            version = self._imports.get(domain, 0) or opsets.newest_version(domain, 1 << 30)
            kind = opsets.attribute_types(node[0], domain, version).get(key, 0)
        return attribute_parser.parse(key, text, kind, f"node {node[1]!r} ({node[0]})")

    def _graphs(
        self,
        node: NodeTuple,
        key: str,
        numbers: range,
        old: Any,
        graph_of: GraphOf,
        used: set[int],
        *,
        several: bool,
    ) -> Any:
        if any(number >= len(node[6]) for number in numbers) or used & set(numbers):
            raise GraphError(
                f"attribute {key!r} of node {node[1]!r} ({node[0]}) names a nested graph that "
                f"is not there or stands elsewhere; the node has {len(node[6])}"
            )
        used.update(numbers)
        before: list[Any] = [] if old is None else _old_graphs(old)
        graphs = [
            graph_of(number, before[i] if i < len(before) else None)
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
        made.type = attributes.GRAPHS if several else attributes.GRAPH
        if several:
            made.graphs.extend(graphs)
        else:
            made.g.CopyFrom(graphs[0])
        return made


def _is_graph(value: Any) -> bool:
    return attributes.kind_of(value) in (attributes.GRAPH, attributes.GRAPHS)


def _old_graphs(value: Any) -> list[Any]:
    return [value.g] if attributes.kind_of(value) == attributes.GRAPH else list(value.graphs)


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


def _set_optional(made: Any, field: str, text: str) -> None:
    if text:
        setattr(made, field, text)
    elif getattr(made, field):
        made.ClearField(field)


def _set_marks(made: Any, attrs: Mapping[str, str]) -> None:
    """Keep attributes of a pass's own, ``__mark__``, as metadata of the node."""
    marks = {
        key: text
        for key, text in attrs.items()
        if key.startswith("__") and key.endswith("__") and key not in OWN_KEYS
    }
    named = {value.name for value in made.attribute}
    marks = {key: text for key, text in marks.items() if key not in named}
    for entry in made.metadata_props:
        if entry.key in marks:
            entry.value = marks.pop(entry.key)
    for key, text in sorted(marks.items()):
        made.metadata_props.add(key=key, value=text)
