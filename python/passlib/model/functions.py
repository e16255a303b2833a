"""Bodies of the local functions of ONNX models, as models of their own."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import passlib._core as _core
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import ABSENT, DOCUMENT
from passlib.dialects.onnx.calls import values_of
from passlib.dialects.onnx.nested import (
    external_tensors,
    graphs_within,
    put_inside,
    rename_values,
    used_by,
    value_info,
)
from passlib.dialects.onnx.reading import Content, Document, Reference, document_of
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.graph.plain import PlainGraph
from passlib.model.edits import Change
from passlib.model.graph import graph_of

_CONSTANT_OF_ANY_TYPE = 9
"""The operator set from which on Constant has types other than `_REAL_TYPES`."""
_REAL_TYPES = {1, 10, 11}
"""ONNX's numbers of single, half and double precision."""

M = TypeVar("M")


class _Key(NamedTuple):
    domain: str
    name: str
    overload: str


def _key_of(function: Any) -> _Key:
    return _Key(schema.plain(function.domain), function.name, function.overload)


def _call_of(node: Any) -> _Key:
    return _Key(schema.plain(node.domain), node.op_type, node.overload)


def with_functions(model: M, change: Change, *, falls: bool) -> M:
    """Return an ONNX model whose local functions have other bodies; itself if nothing changes.

    Parameters
    ----------
    model : Model
    change : callable
        Gets a model whose graph is the body of a function that is called, and returns a model that
        computes the same, or None. The inputs have the types and dimensions that are the same at
        all calls.
    falls : bool
        Keep a new body only if it has fewer operators or bytes.
    """
    like: Any = model
    data = like.data(whole=False)
    document = document_of(data.attributes)
    proto = document.model
    bodies = {_key_of(function): function for function in proto.functions}
    calls = _calls(like.symbol, proto, bodies)
    imports = json.loads(data.attributes["opset_import"])
    facts = _core.GraphFacts(document.file, data.graph, imports, dict(data.args)).calls()
    changed = False
    for key, function in list(bodies.items()):
        own = calls.get(key, [])
        # An input that a call leaves out is absent in the body.
        if not own or min(own) < len(function.input):
            continue
        count, inputs = facts.get((key.domain, key.name), (0, []))
        known = inputs if not key.overload and count == len(own) else []
        made = _Body(proto, function, bodies).changed(known, change)
        if made is not None and (not falls or _price(made) < _price(function)):
            bodies[key] = made
            changed = True
    if not changed:
        return model
    content = document.file.with_functions([body.SerializeToString() for body in bodies.values()])
    file = _core.OnnxFile(content)
    new = Document(content, document.path, file, document.arrays, document.folder)
    attributes = {**data.attributes, DOCUMENT: Reference.to(new)}
    symbol = graph_of(data.graph, attributes, like.dialect)
    made_model: M = type(like).of_parts(symbol, like.args, like.aux, new)
    return made_model


def _calls(symbol: PlainGraph, proto: Any, bodies: Mapping[_Key, Any]) -> dict[_Key, list[int]]:
    """Return for each function, for each call, the number of inputs; 0 if one is left out."""
    found: dict[_Key, list[int]] = defaultdict(list)
    training = [body for t in proto.training_info for body in (t.initialization, t.algorithm)]
    for graph in graphs_within(*bodies.values(), *training):
        for call in graph.node:
            found[_call_of(call)].append(len(call.input) if all(call.input) else 0)
    pending: list[PlainGraph] = [symbol]
    while pending:
        for node in pending.pop().nodes():
            pending += node.subgraphs
            key = _Key(
                schema.plain(node.attrs.get("__domain__", "")),
                node.op,
                node.attrs.get("__overload__", ""),
            )
            if key in bodies:
                is_whole = all(entry.node.name != ABSENT for entry in node.inputs)
                found[key].append(len(node.inputs) if is_whole else 0)
    return found


class _Body:
    """The body of a function, as a model while it is changed.

    Nodes whose attributes refer to those of the call become operators that nobody knows: a model
    has no such attributes, and no pass must take the reference for a value. Results of unknown type
    become inputs of such operators, too, whose outputs have a type, as those of a model must.
    """

    def __init__(self, model: Any, function: Any, bodies: Mapping[_Key, Any]) -> None:
        self._model = model
        self._function = function
        self._bodies = bodies
        self._hidden: list[Any] = []
        self._domain = REFERRING
        taken = {node.domain for graph in graphs_within(function) for node in graph.node}
        while self._domain in taken:
            self._domain += "_"

    def changed(self, inputs: Sequence[tuple[Any, ...]], change: Change) -> Any:
        """Return the function with the body that ``change`` makes; None if there is no other one.

        ``inputs``: facts of the inputs, as far as they are known.
        """
        made = self._alone(inputs)
        content = None if made is None else change(made.SerializeToString())
        if content is None:
            return None
        changed = type(made).FromString(content)
        if isinstance(content, Content):
            put_inside(external_tensors(changed), content.weights)
        return self._put_back(changed, made)

    def _alone(self, inputs: Sequence[tuple[Any, ...]]) -> Any:
        """Return the model; None for a graph next to an attribute that refers."""
        function = self._function
        if len({*function.input, *function.output}) < len(function.input) + len(function.output):
            return None
        made = type(self._model)(ir_version=self._model.ir_version)
        made.opset_import.extend(function.opset_import or self._model.opset_import)
        made.opset_import.add(domain=self._domain, version=1)
        graph = made.graph
        graph.name = function.name
        graph.node.extend(function.node)
        graph.input.extend(value_info(name, None, None) for name in function.input)
        for number, name in enumerate(function.output):
            graph.output.append(value_info(f"{name}{_RESULT}", 1, ()))
            result = graph.node.add(op_type=f"{_RESULT}{number}", domain=self._domain)
            result.input.append(name)
            result.output.append(f"{name}{_RESULT}")
        for value, (code, containers, sizes, *_) in zip(graph.input, inputs, strict=False):
            if code and not containers:
                value.CopyFrom(value_info(value.name, code, sizes))
        for body in graphs_within(graph):
            for node in body.node:
                if any(attribute.ref_attr_name for attribute in node.attribute):
                    if any(each.HasField("g") or each.graphs for each in node.attribute):
                        return None
                    self._hide(node)
        self._add_functions(made)
        return made

    def _hide(self, node: Any) -> None:
        kept = type(node)()
        kept.CopyFrom(node)
        # Each has an operator of its own: equal ones would be merged.
        node.op_type = f"{_REFERRING}{len(self._hidden)}"
        node.domain = self._domain
        node.ClearField("overload")
        del node.attribute[:]
        self._hidden.append(kept)

    def _add_functions(self, made: Any) -> None:
        """Add the functions that the body calls, and those that they call."""
        pending, added = [made.graph], set()
        while pending:
            for graph in graphs_within(pending.pop()):
                for node in graph.node:
                    key = _call_of(node)
                    if key in self._bodies and key not in added:
                        added.add(key)
                        made.functions.add().CopyFrom(self._bodies[key])
                        pending.append(self._bodies[key])

    def _put_back(self, changed: Any, made: Any) -> Any:
        onnx: Any = require("onnx", extra="run")
        function, graph = self._function, changed.graph
        imports = {(schema.plain(entry.domain), entry.version) for entry in made.opset_import}
        new = {(schema.plain(entry.domain), entry.version) for entry in changed.opset_import}
        own = [version for domain, version in imports if not domain]
        if new - imports or graph.sparse_initializer or not own:
            return None
        types = {tensor.data_type for tensor in graph.initializer}
        if own[0] < _CONSTANT_OF_ANY_TYPE and not types <= _REAL_TYPES:
            return None
        nodes = []
        for tensor in graph.initializer:
            node = onnx.NodeProto(op_type="Constant", output=[tensor.name])
            attribute = node.attribute.add(name="value", type=4)
            attribute.t.CopyFrom(tensor)
            attribute.t.ClearField("name")
            nodes.append(node)
        del graph.initializer[:]
        nodes += graph.node
        self._name_results(graph, nodes, onnx)
        for body in graphs_within(graph):
            for node in body.node:
                if node.domain == self._domain:
                    kept = self._hidden[int(node.op_type.removeprefix(_REFERRING))]
                    node.op_type = kept.op_type
                    node.ClearField("domain")
                    for field in ("domain", "overload"):
                        if kept.HasField(field):
                            setattr(node, field, getattr(kept, field))
                    node.attribute.extend(kept.attribute)
        producers = {name: node for node in function.node for name in node.output}
        same = {"", *function.input, *function.output}
        for node in graph.node:
            if same.issuperset(used_by(node)):
                same.update(name for name in node.output if producers.get(name) == node)
        stated = [value for value in function.value_info if value.name in same]
        result = type(function)()
        result.CopyFrom(function)
        for field, items in (("node", graph.node), ("value_info", stated)):
            result.ClearField(field)
            getattr(result, field).extend(items)
        return None if result == function else result

    def _name_results(self, graph: Any, nodes: list[Any], onnx: Any) -> None:
        """Set the nodes of a graph, whose results get their names back."""
        marks = {node.op_type: node for node in nodes if node.domain == self._domain}
        sources = [
            marks[f"{_RESULT}{number}"].input[0] for number in range(len(self._function.output))
        ]
        del graph.node[:]
        graph.node.extend(
            node
            for node in nodes
            if node.domain != self._domain or not node.op_type.startswith(_RESULT)
        )
        made = {name for node in graph.node for name in node.output}
        names: dict[str, str] = {}
        copies = []
        for source, name in zip(sources, self._function.output, strict=True):
            if source in made and source not in names:
                names[source] = name
            else:
                copies.append((source, name))
        taken = set(values_of(graph))
        fresh = NameSource(taken | set(self._function.output))
        for name in self._function.output:
            if name in taken and name not in names:
                names[name] = fresh.fresh(name)
        rename_values(names, graph)
        for source, name in copies:
            graph.node.append(
                onnx.NodeProto(op_type="Identity", input=[names.get(source, source)], output=[name])
            )


REFERRING = "referring"
"""The domain of operators that only a body has; with underscores where the model has it too."""

_RESULT = "Result"
_REFERRING = "Referring"


def _price(function: Any) -> tuple[int, int]:
    nodes = (node for graph in graphs_within(function) for node in graph.node)
    return sum(node.op_type != "Constant" for node in nodes), function.ByteSize()
