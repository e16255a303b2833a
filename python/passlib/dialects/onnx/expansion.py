"""Replaces operators of ONNX models by those that ONNX defines them by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.calls import Call, Key, values_of
from passlib.dialects.onnx.nested import copy_of, graphs_within, refill
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.dialects.onnx.targets import (
    Known,
    OperatorSet,
    Target,
    body_of,
    objection,
    qualified,
    walk,
)
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.graph.names import NameSource

_DEEPEST: Final = 8
"""Bodies within bodies; those of ONNX are three deep."""


def expand(model: Any, judge: Target | OperatorSet, spared: Collection[str] = ()) -> Counter[str]:
    """Replace refused operators of the main graph by those that ONNX defines them by.

    An operator stays if one of those is refused as well, and ONNX does not define it by others.

    Parameters
    ----------
    model : onnx.ModelProto
        Is changed.
    judge : Target or OperatorSet
    spared : collection of str
        Refused operators that something else will replace.

    Returns
    -------
    Counter of str
        How often each operator was replaced.
    """
    return _Expansion(judge, spared).run(model)


class _Expansion:
    def __init__(self, judge: Target | OperatorSet, spared: Collection[str]) -> None:
        self._judge = judge
        self._spared = frozenset(spared)

    def run(self, model: Any) -> Counter[str]:
        graphs = list(graphs_within(model.graph))
        self._names = NameSource(set(values_of(model.graph)))
        self._titles = NameSource({node.name for graph in graphs for node in graph.node})
        found = self._replacements(model, 0, stays=True)
        assert found is not None
        _put(model, {key: nodes for key, (_, nodes) in found.items()})
        return Counter(name for name, _ in found.values())

    def _replacements(
        self, model: Any, depth: int, *, stays: bool
    ) -> dict[int, tuple[str, list[Any]]] | None:
        """Return the operators that are replaced and their nodes, by number of the node.

        ``stays``: whether an operator without replacement may stay; otherwise it is None.
        """
        functions = {(schema.plain(each.domain), each.name) for each in model.functions}
        versions = versions_of(model.opset_import)
        suspects = [
            (number, node)
            for number, (node, _) in enumerate(walk(model.graph))
            if (schema.plain(node.domain), node.op_type) not in functions
        ]
        typed = [known for _, known in walk(inferred(model).graph)]
        found = {}
        for number, node in suspects:
            known = typed[number]
            if not objection(node, versions, self._judge, known):
                continue
            made = None
            if depth < _DEEPEST:
                made = self._expanded(node, model, known, depth)
            if made is not None:
                found[number] = (node.op_type, made)
            elif not (stays or qualified(node) in self._spared):
                return None
        return found

    def _expanded(self, node: Any, model: Any, known: Known, depth: int) -> list[Any] | None:
        """Return the nodes that compute what a node does; None if there are none."""
        versions = versions_of(model.opset_import)
        version = versions.get(schema.plain(node.domain), 1)
        own = schema.schema_of(node.op_type, node.domain, version)
        if own is None or not (own.has_function or own.has_context_dependent_function):
            return None
        onnx = require("onnx", extra="onnx")
        empty = onnx.TypeProto()
        types = [known.get(name, ("", None, empty))[2] if name else empty for name in node.input]
        body = body_of(
            own, node, versions, [kind.SerializeToString() for kind in types], any_set=True
        )
        if body is None or not body.node:
            return None
        call = _with_defaults(node, own)
        made = Call(call, Key("", node.op_type, ""), body, self._names, self._titles).nodes()
        for each in made:
            refill(each.metadata_props, node.metadata_props)
        alone = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
        alone.graph.node.extend(made)
        for name, kind in dict(zip(node.input, types, strict=True)).items():
            if name:
                alone.graph.input.add(name=name).type.CopyFrom(kind)
        # Nested graphs of the body may read what is around the node, too.
        alone.graph.output.extend(
            onnx.ValueInfoProto(name=name) for name in dict.fromkeys(filter(None, node.output))
        )
        try:
            inner = self._replacements(alone, depth + 1, stays=False)
        except PasslibError:  # the node is not sound, or of types that the body does not take
            return None
        if inner is None:
            return None
        _put(alone, {key: nodes for key, (_, nodes) in inner.items()})
        return list(alone.graph.node)


def _with_defaults(node: Any, own: Any) -> Any:
    """Return a copy of a node that states the defaults of its omitted attributes."""
    made = copy_of(node)
    stated = {each.name for each in node.attribute}
    for name, attribute in own.attributes.items():
        if name not in stated and attribute.default_value.type:
            made.attribute.append(attribute.default_value)
    return made


def _put(model: Any, replaced: Mapping[int, list[Any]]) -> None:
    """Replace nodes by others, by their numbers."""
    if not replaced:
        return
    nodes = [node for node, _ in walk(model.graph)]
    numbers = {id(node): number for number, node in enumerate(nodes)}  # while nodes holds them
    for graph in reversed(list(graphs_within(model.graph))):  # inner ones first
        places = [numbers.get(id(node), -1) for node in graph.node]
        if replaced.keys().isdisjoint(places):
            continue
        kept = zip(places, graph.node, strict=True)
        refill(graph.node, (new for place, old in kept for new in replaced.get(place, [old])))
