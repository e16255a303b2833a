"""From a graph to the text of a network file, in which unchanged parts keep their spelling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import passlib._core as _core
from passlib.dialects.json_text import Layout, parse, print_json
from passlib.errors import UnsupportedError
from passlib.families.dlprim import options
from passlib.families.dlprim.network import Network, Operator, Output, is_loss, parameter_names
from passlib.families.dlprim.reading.document import Document, Template
from passlib.families.dlprim.schema import OPERATORS
from passlib.families.dlprim.types import file_name
from passlib.families.dlprim.writing.draft import Draft, Value
from passlib.families.dlprim.writing.drafting import draft_network
from passlib.families.dlprim.writing.tensor_names import Naming, name_tensors
from passlib.graph.node import VARIABLE

_NEW = b'{\n  "": 0}'
"""The layout of new files: two spaces for each level."""


def write_network(
    graph: _core.Graph,
    arrays: Mapping[str, Any],
    template: Template | None,
    names: Sequence[str],
) -> bytes:
    """Write the network file of a graph.

    Parameters
    ----------
    graph : _core.Graph
    arrays : mapping of str to array
        Parameters by name.
    template : Template, optional
        The files that the graph came from.
    names : sequence of str
        Names that the outputs must keep if their number is unchanged.

    Returns
    -------
    bytes

    Raises
    ------
    GraphError
        The graph is not a valid network.
    UnsupportedError
        DLPrimitives lacks something in the graph.
    """
    if template is not None and _unchanged(graph, arrays, template, names):
        return template.document.text
    document = template.document if template is not None else None
    network = document.network if document is not None else Network((), (), ())
    known = {operator.place: operator.type for operator in network.operators}
    known.update({item.place: VARIABLE for item in network.inputs})
    draft = draft_network(graph, arrays, known, names)
    in_place = frozenset(o.place for o in network.operators if set(o.outputs) & set(o.inputs))
    naming = name_tensors(draft, in_place)
    return _Writer(document, network, draft, naming).write()


def _unchanged(
    graph: _core.Graph, arrays: Mapping[str, Any], template: Template, names: Sequence[str]
) -> bool:
    """Whether the file already describes this graph."""
    document = template.document
    parameters = document.parameters
    fitting = all(
        (tuple(array.shape), array.dtype.name) == (parameters[name].shape, parameters[name].dtype)
        for name, array in arrays.items()
        if name in parameters
    )
    if not fitting or tuple(names) != document.outputs:
        return False
    return template.graph.equals(graph)


class _Writer:
    def __init__(
        self, document: Document | None, network: Network, draft: Draft, naming: Naming
    ) -> None:
        self._document = document
        self._originals = {operator.place: operator for operator in network.operators}
        self._inputs = {item.place: item for item in network.inputs}
        self._outputs = network.outputs
        self._draft = draft
        self._names = naming.names
        self._omitted = naming.omitted

    def write(self) -> bytes:
        root: Mapping[str, Any] = self._document.root if self._document is not None else {}
        parts = {
            "inputs": [self._input(value) for value in self._draft.inputs],
            "operators": [
                self._operator(value)
                for value in self._draft.operators
                if value not in self._omitted
            ],
            "outputs": self._output_list(),
        }
        fields = {key: _kept(root.get(key), parts[key]) for key in ("inputs", "outputs")}
        fields["operators"] = _kept(root.get("operators"), parts["operators"])
        if self._document is None:
            return print_json(fields, Layout(_NEW, parse(_NEW))) + b"\n"
        text = self._document.text
        if all(fields[key] is root[key] for key in fields):
            return text
        layout = Layout(text, root)
        printed = print_json({key: fields.get(key, root[key]) for key in root}, layout)
        start, end = self._document.root.start, self._document.root.end
        return text[:start] + printed + text[end:]

    def _input(self, value: Value) -> Any:
        original = self._inputs.get(value.place)
        name, spec = self._names[value], value.spec
        if original is not None and (original.name, original.spec) == (name, spec):
            return original.json
        json: dict[str, Any] = dict(original.json) if original is not None else {}
        if original is None or original.spec.shape != spec.shape:
            json["shape"] = list(spec.shape)
        if original is None or original.name != name:
            json["name"] = name
        dtype = original.spec.dtype if original is not None else "float32"
        if dtype != spec.dtype:
            json["dtype"] = file_name(spec.dtype)
        return json

    def _operator(self, value: Value) -> Any:
        original = self._originals.get(value.place)
        inputs = [self._names[used] for used in value.inputs]
        outputs = [self._names[value]]
        if original is None:
            json: dict[str, Any] = {"name": value.node, "type": value.op, "inputs": inputs}
            json["outputs"] = outputs
            if value.frozen:
                json["frozen"] = True
            chosen = _options(value, {}, {})
            if chosen:
                json["options"] = chosen
            if tuple(value.parameters) != parameter_names(value.node, (), len(value.parameters)):
                json["params"] = list(value.parameters)
            return json
        changes: dict[str, Any] = {}
        if original.name != value.node:
            changes["name"] = value.node
        if list(original.inputs) != inputs:
            changes["inputs"] = inputs
        if list(original.outputs) != outputs:
            changes["outputs"] = outputs
        if original.frozen != value.frozen:
            changes["frozen"] = value.frozen
        if dict(value.attributes) != dict(original.attributes):
            own = original.json.get("options")
            given = own if isinstance(own, dict) else {}
            changes["options"] = _options(value, given, original.attributes)
        if not _same_parameters(value, original):
            changes["params"] = list(value.parameters)
        return {**original.json, **changes} if changes else original.json

    def _output_list(self) -> list[Any]:
        if self._document is not None and not self._outputs:
            return []
        names = list(dict.fromkeys(self._names[value] for value in self._draft.outputs))
        if names == [output.name for output in self._outputs] and self._document is not None:
            listed: list[Any] = self._document.root["outputs"]
            return listed
        if len(names) == len(self._outputs):
            pairs = zip(self._outputs, names, strict=True)
            return [_renamed_output(output, name) for output, name in pairs]
        kept = {output.name: output for output in self._outputs}
        return [kept[name].json if name in kept else name for name in names]


def _kept(original: Any, items: list[Any]) -> Any:
    """Return the file's own list if it holds the very same items."""
    if items is original:
        return original
    same = isinstance(original, list) and len(original) == len(items)
    if same and all(a is b for a, b in zip(original, items, strict=True)):
        return original
    return items


def _same_parameters(value: Value, original: Operator) -> bool:
    count = len(value.parameters)
    if len(original.params) > count:
        return False
    return tuple(value.parameters) == parameter_names(value.node, original.params, count)


def _options(value: Value, given: Mapping[str, Any], before: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an operator, unchanged ones in the file's own spelling.

    Options that the original parser ignores are kept too, unless a pass set them.
    """
    chosen: dict[str, Any] = {}
    for key, json in given.items():
        if key in value.attributes and value.attributes[key] != before.get(key):
            chosen[key] = _json_value(value, key)
        elif key in value.attributes or key not in before:
            chosen[key] = json
    known = [key for key in OPERATORS[value.op].options if key in value.attributes]
    rest = sorted(key for key in value.attributes if key not in known)
    for key in known + rest:
        if key not in chosen:
            chosen[key] = _json_value(value, key)
    return chosen


def _json_value(value: Value, key: str) -> Any:
    try:
        return options.json_value(value.op, key, value.attributes[key])
    except options.OptionError as error:
        raise UnsupportedError(f"node {value.node!r} ({value.op}): {error}") from error


def _renamed_output(output: Output, name: str) -> Any:
    if output.name == name:
        return output.json
    if output.loss_weight is not None:
        return (
            {**output.json, "name": name}
            if isinstance(output.json, dict)
            else {"name": name, "loss_weight": output.loss_weight}
        )
    if is_loss(output.name) and not is_loss(name):
        return {"name": name, "loss_weight": 1.0}
    return {**output.json, "name": name} if isinstance(output.json, dict) else name
