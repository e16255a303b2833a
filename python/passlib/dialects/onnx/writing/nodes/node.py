"""Nodes of a graph as NodeProtos: those that did not change are the ones of the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from passlib._core import NodeTuple
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.keys import DOMAIN, OVERLOAD, OWN_KEYS
from passlib.dialects.onnx.messages import copy_of
from passlib.dialects.onnx.originals import OriginalNode
from passlib.dialects.onnx.writing.nodes.attributes import AttributeWriter, GraphOf, is_own
from passlib.files.optional import require

__all__ = ["NodeNames", "NodeWriter"]


@dataclass(slots=True)
class NodeNames:
    """The names of a node and of its values, as they will be in the file.

    Attributes
    ----------
    name : str
    inputs, outputs : list of str
    """

    name: str
    inputs: list[str]
    outputs: list[str]


class NodeWriter:
    """Makes NodeProtos.

    Parameters
    ----------
    document : Document
    imports : mapping of str to int
        Versions of the operator sets, for the types of new attributes.

    Attributes
    ----------
    domains : set of str
        Operator sets that changed nodes need.
    """

    def __init__(self, document: Document, imports: Mapping[str, int]) -> None:
        self._attributes = AttributeWriter(document, imports)
        self._proto: Any = require("onnx", extra="onnx").NodeProto
        self.domains: set[str] = set()

    def write(
        self, node: NodeTuple, original: OriginalNode | None, names: NodeNames, graph_of: GraphOf
    ) -> Any:
        """Make the NodeProto of a node.

        Parameters
        ----------
        node : NodeTuple
        original : OriginalNode, optional
            The node in the file.
        names : NodeNames
        graph_of : callable
            Writes its nested graphs.

        Returns
        -------
        onnx.NodeProto
            That of the file itself if nothing differs.

        Raises
        ------
        GraphError, UnsupportedError
            The node's attributes have no form in ONNX.
        """
        attrs = node.attrs
        if original is not None and original.proto.op_type == node.op:
            proto = original.proto
            same = (
                attrs == original.attrs
                and names.inputs == proto.input[:]
                and names.outputs == proto.output[:]
                and names.name == proto.name
            )
            if same and not node.subgraphs:
                return proto
            values, changed = self._attributes.write(node, original, graph_of)
            if same and not changed:
                return proto
            made = copy_of(proto)
            del made.input[:], made.output[:], made.attribute[:]
        else:
            values, _ = self._attributes.write(node, original, graph_of)
            made = self._proto()
        made.op_type = node.op
        if names.name or made.HasField("name"):
            made.name = names.name
        made.input.extend(names.inputs)
        made.output.extend(names.outputs)
        made.attribute.extend(values)
        domain = attrs.get(DOMAIN, "")
        if domain != made.domain:  # ONNX's checker does not know "ai.onnx" by that name
            _set_optional(made, "domain", schema.plain(domain))
        _set_optional(made, "overload", attrs.get(OVERLOAD, ""))
        _set_marks(made, attrs)
        self.domains.add(made.domain)
        return made


def _set_optional(made: Any, field: str, text: str) -> None:
    if text:
        setattr(made, field, text)
    elif getattr(made, field):
        made.ClearField(field)


def _set_marks(made: Any, attrs: Mapping[str, str]) -> None:
    """Write a pass's own attributes, ``__mark__``, as metadata of the node."""
    marks = {key: text for key, text in attrs.items() if is_own(key) and key not in OWN_KEYS}
    for value in made.attribute:
        marks.pop(value.name, None)
    for entry in made.metadata_props:
        if entry.key in marks:
            entry.value = marks.pop(entry.key)
    for key, text in sorted(marks.items()):
        made.metadata_props.add(key=key, value=text)
