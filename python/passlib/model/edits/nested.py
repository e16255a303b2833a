"""Nested graphs of ONNX as models of their own, for what changes models."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.soundness import inferred
from passlib.errors import GraphError, PasslibError
from passlib.files.optional import require
from passlib.graph.names import NameSource

Change = Callable[[bytes], bytes | None]


def changed_nested(content: bytes, change: Change) -> bytes | None:
    """Change the nested graphs of the nodes of a model's graph.

    Parameters
    ----------
    content : bytes
        An ONNX model with all of its weights.
    change : callable
        Gets a model whose graph is a nested graph, with the values that it captures as inputs,
        and returns a model that computes the same, or None.

    Returns
    -------
    bytes or None
        The changed model, None if nothing was changed.
    """
    model = require("onnx", extra="run").ModelProto.FromString(content)
    places = [
        (node, attribute.g)
        for node in model.graph.node
        for attribute in node.attribute
        if attribute.HasField("g") and len(attribute.g.node) > 1
    ]
    if not places or model.functions:
        return None
    outside = _Outside(model)
    done = [_change(outside, node, graph, change) for node, graph in places]
    return bytes(model.SerializeToString()) if any(done) else None


class _Outside:
    """What nested graphs can use."""

    def __init__(self, model: Any) -> None:
        self.model = model
        fed = {value.name for value in model.graph.input if model.ir_version >= INPUTS_ALSO}
        self.initializers = {
            tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in fed
        }
        light = _light(model)
        try:
            graph = inferred(light, data=True).graph
        except GraphError:  # running the model will report it
            graph = light.graph
        values = (*graph.value_info, *graph.input, *graph.output)
        self.types = {value.name: value for value in values}
        self.names = NameSource(set(_names_of(model.graph)))

    def sizes(self, name: str) -> list[Any] | None:
        """Return the sizes of a value as ONNX's Dimension; None for an unknown rank."""
        value = self.types.get(name)
        if value is None or not value.type.tensor_type.HasField("shape"):
            return None
        return list(value.type.tensor_type.shape.dim)


def _light(model: Any) -> Any:
    """Return a model without the elements of its larger weights."""
    light = type(model)()
    light.CopyFrom(model)
    for tensor in light.graph.initializer:
        if len(tensor.raw_data) > 1024:
            tensor.ClearField("raw_data")
            tensor.data_location = tensor.EXTERNAL
            tensor.external_data.add(key="location", value="weights")
    return light


def _change(outside: _Outside, node: Any, graph: Any, change: Change) -> bool:
    captured = _captured(graph)
    alone = _alone(outside, node, graph, captured)
    if alone is None:
        return False
    try:
        changed = change(alone.SerializeToString())
    except PasslibError:  # a graph that is no model of its own stays as it is
        return False
    if changed is None:
        return False
    made = type(outside.model).FromString(changed).graph
    _put_back(outside, graph, made, captured)
    return True


def _alone(outside: _Outside, node: Any, graph: Any, captured: list[str]) -> Any:
    """Return a nested graph as a model; None if the type of a captured value is not known."""
    made = type(outside.model)()
    made.ir_version = outside.model.ir_version
    made.opset_import.extend(outside.model.opset_import)
    made.graph.CopyFrom(graph)
    if node.op_type != "If":
        for value in made.graph.input:
            # From one round to the next the sizes may change, whatever the file states.
            if value.type.WhichOneof("value") == "tensor_type":
                value.type.tensor_type.ClearField("shape")
    if node.op_type == "Scan":
        _state_parts(outside, node, made.graph)
    for name in captured:
        if name in outside.initializers:
            made.graph.initializer.append(outside.initializers[name])
        elif name in outside.types and outside.types[name].type.tensor_type.elem_type:
            made.graph.input.append(outside.types[name])
        else:
            return None
    return made


def _state_parts(outside: _Outside, node: Any, graph: Any) -> None:
    """State the shapes of what a Scan takes of its inputs in each round."""
    integers = {item.name: item for item in node.attribute}
    count = integers["num_scan_inputs"].i if "num_scan_inputs" in integers else 0
    axes = list(integers["scan_input_axes"].ints) if "scan_input_axes" in integers else []
    # Before operator set 9, inputs have another axis, for the batch.
    if not 0 < count <= len(graph.input) == len(node.input) or _opset(outside.model) < 9:
        return
    parts = zip(graph.input[-count:], node.input[-count:], axes or [0] * count, strict=True)
    for part, name, axis in parts:
        sizes = outside.sizes(name)
        if sizes is not None and -len(sizes) <= axis < len(sizes):
            del sizes[axis]
            shape = part.type.tensor_type.shape
            shape.SetInParent()
            shape.dim.extend(sizes)


def _opset(model: Any) -> int:
    versions = [item.version for item in model.opset_import if item.domain in ("", "ai.onnx")]
    return int(versions[0]) if versions else 1


def _put_back(outside: _Outside, graph: Any, made: Any, captured: list[str]) -> None:
    """Replace the contents of a nested graph; its inputs and outputs keep names and types."""
    own = set(_names_of(graph))
    fixed = {value.name for value in (*graph.input, *graph.output)}
    shared = {
        tensor.name
        for tensor in made.initializer
        if tensor.name in captured and _same(tensor, outside.initializers.get(tensor.name))
    }
    known = {*shared, *(value.name for value in made.input), *fixed}
    renamed = {}
    for name in _defined(made):
        if name and name not in known and (name not in own or name in captured):
            renamed[name] = outside.names.fresh(name)
    _rename(made, renamed)
    for tensor in [tensor for tensor in made.initializer if tensor.name in fixed]:
        # An output needs a node.
        node = made.node.add(op_type="Constant", output=[tensor.name])
        attribute = node.attribute.add(name="value", type=4)
        attribute.t.CopyFrom(tensor)
        attribute.t.ClearField("name")
    kept = [tensor for tensor in made.initializer if tensor.name not in shared | fixed]
    del graph.node[:], graph.initializer[:], graph.value_info[:]
    graph.node.extend(made.node)
    graph.initializer.extend(kept)


def _same(left: Any, right: Any) -> bool:
    return right is not None and (
        left is right
        or (left.data_type == right.data_type and list(left.dims) == list(right.dims)
            and left.raw_data == right.raw_data and bool(left.raw_data))
    )  # fmt: skip


def _graphs(graph: Any) -> Iterator[Any]:
    pending = [graph]
    while pending:
        item = pending.pop()
        yield item
        for node in item.node:
            pending += [a.g for a in node.attribute if a.HasField("g")]
            pending += [inner for a in node.attribute for inner in a.graphs]


def _names_of(graph: Any) -> Iterator[str]:
    """Iterate over the names of all values of a graph, nested graphs included."""
    for inner in _graphs(graph):
        yield from (value.name for value in (*inner.input, *inner.output, *inner.initializer))
        for node in inner.node:
            yield from (*node.input, *node.output)


def _defined(graph: Any) -> Iterator[str]:
    """Iterate over the names that a graph gives to values, nested graphs included."""
    for inner in _graphs(graph):
        yield from (tensor.name for tensor in inner.initializer)
        for node in inner.node:
            yield from node.output


def _captured(graph: Any) -> list[str]:
    """Return the names that a graph takes from the graphs around it, in order of use."""
    found: dict[str, None] = {}
    pending: list[tuple[Any, frozenset[str]]] = [(graph, frozenset())]
    while pending:
        inner, above = pending.pop()
        here = above | {value.name for value in (*inner.input, *inner.initializer)}
        here |= {name for node in inner.node for name in node.output}
        used = [name for node in inner.node for name in node.input]
        found.update((name, None) for name in used if name and name not in here)
        found.update((value.name, None) for value in inner.output if value.name not in here)
        for node in inner.node:
            graphs = [a.g for a in node.attribute if a.HasField("g")]
            graphs += [item for a in node.attribute for item in a.graphs]
            pending += [(item, here) for item in graphs]
    return list(found)


def _rename(graph: Any, names: dict[str, str]) -> None:
    for inner in _graphs(graph):
        for tensor in inner.initializer:
            tensor.name = names.get(tensor.name, tensor.name)
        for value in inner.output:
            value.name = names.get(value.name, value.name)
        for node in inner.node:
            for place, name in enumerate(node.input):
                node.input[place] = names.get(name, name)
            for place, name in enumerate(node.output):
                node.output[place] = names.get(name, name)
