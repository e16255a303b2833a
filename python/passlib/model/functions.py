"""Bodies of the local functions of ONNX models, as models of their own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import passlib._core as _core
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import graphs_within, value_info
from passlib.dialects.onnx.reading import read_bytes
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.model.edits import Change, names_of, rename_values


class _Key(NamedTuple):
    domain: str
    name: str
    overload: str


def _key_of(function: Any) -> _Key:
    return _Key(schema.plain(function.domain), function.name, function.overload)


def _call_of(node: Any) -> _Key:
    return _Key(schema.plain(node.domain), node.op_type, node.overload)


def changed_functions(content: bytes, change: Change) -> bytes | None:
    """Change the bodies of the local functions that a model calls.

    Result: the changed model, None if nothing was changed.

    Parameters
    ----------
    content : bytes
        An ONNX model with all of its weights.
    change : callable
        Gets a model whose graph is a body, and returns a model that computes the same, or None. Its
        inputs have the types and dimensions that are the same at all calls.
    """
    model = require("onnx", extra="run").ModelProto.FromString(content)
    bodies = {_key_of(function): function for function in model.functions}
    training = [body for t in model.training_info for body in (t.initialization, t.algorithm)]
    calls: dict[_Key, list[Any]] = defaultdict(list)
    for graph in graphs_within(model.graph, *bodies.values(), *training):
        for node in graph.node:
            if _call_of(node) in bodies:
                calls[_call_of(node)].append(node)
    read = read_bytes(content)
    facts = _core.GraphFacts(read.template.file, read.graph, read.template.imports, {}).calls()
    done = []
    for key, function in bodies.items():
        count, inputs = facts.get((key.domain, key.name), (0, []))
        known = inputs if not key.overload and count == len(calls[key]) else []
        # An input that a call leaves out is absent in the body.
        whole = all(len(c.input) >= len(function.input) and all(c.input) for c in calls[key])
        body = _Body(model, function, bodies)
        done.append(bool(calls[key]) and whole and body.change(known, change))
    return bytes(model.SerializeToString()) if any(done) else None


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
        self._domain = "referring"
        taken = {node.domain for graph in graphs_within(function) for node in graph.node}
        while self._domain in taken:
            self._domain += "_"

    def change(self, inputs: Sequence[tuple[Any, ...]], change: Change) -> bool:
        """Replace the body by what a function makes of it; return whether it is another one.

        ``inputs``: facts of the inputs, as far as they are known.
        """
        made = self._alone(inputs)
        if made is None:
            return False
        try:
            changed = change(made.SerializeToString())
        except PasslibError:  # a body that is no model stays as it is
            return False
        return changed is not None and self._put_back(type(made).FromString(changed), made)

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

    def _put_back(self, changed: Any, made: Any) -> bool:
        onnx: Any = require("onnx", extra="run")
        function, graph = self._function, changed.graph
        imports = {(schema.plain(entry.domain), entry.version) for entry in made.opset_import}
        new = {(schema.plain(entry.domain), entry.version) for entry in changed.opset_import}
        has_own = any(not domain for domain, _ in imports)
        if new - imports or graph.sparse_initializer or not has_own:
            return False
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
                    node.op_type, node.domain = kept.op_type, kept.domain
                    if kept.overload:
                        node.overload = kept.overload
                    node.attribute.extend(kept.attribute)
        producers = {name: node for node in function.node for name in node.output}
        same = {n for node in graph.node for n in node.output if producers.get(n) == node}
        same.update(function.input, function.output)
        stated = [value for value in function.value_info if value.name in same]
        result = type(function)()
        result.CopyFrom(function)
        for field, items in (("node", graph.node), ("value_info", stated)):
            result.ClearField(field)
            getattr(result, field).extend(items)
        if _price(result) >= _price(function):
            return False
        function.CopyFrom(result)
        return True

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
        taken = set(names_of(graph))
        fresh = NameSource(taken | set(self._function.output))
        for name in self._function.output:
            if name in taken and name not in names:
                names[name] = fresh.fresh(name)
        rename_values(graph, names)
        for source, name in copies:
            graph.node.append(
                onnx.NodeProto(op_type="Identity", input=[names.get(source, source)], output=[name])
            )


_RESULT = "Result"
_REFERRING = "Referring"


def _price(function: Any) -> tuple[int, int]:
    nodes = (node for graph in graphs_within(function) for node in graph.node)
    return sum(node.op_type != "Constant" for node in nodes), function.ByteSize()
