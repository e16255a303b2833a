"""Messages of ONNX models: copies, nested graphs, and the tensors in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from passlib.dialects.onnx.reading import EXTERNAL, Content, Folder, Held, location_of
from passlib.files.optional import require


def copy_of(message: Any) -> Any:
    """Return a deep copy of a message."""
    made = type(message)()
    made.CopyFrom(message)
    return made


def refill(field: Any, messages: Iterable[Any]) -> None:
    """Replace the messages of a repeated field by copies of others, some of which it may hold."""
    copies = [copy_of(each) for each in messages]
    del field[:]
    field.extend(copies)


def with_name(message: Any, name: str, field: str = "name") -> Any:
    """Return a copy with another name, or the message itself if it already has that name."""
    if getattr(message, field) == name:
        return message
    made = copy_of(message)
    setattr(made, field, name)
    return made


def value_info(name: str, code: int | None, shape: Sequence[int | str | None] | None) -> Any:
    """Make a ValueInfoProto for a tensor.

    ``code``: ONNX's number of the element type, if known. ``shape``: None if unknown, as are sizes
    that are None; those that are text are names.
    """
    made = require("onnx", extra="onnx").ValueInfoProto(name=name)
    if code is not None:
        made.type.tensor_type.elem_type = code
    if shape is not None:
        made.type.tensor_type.shape.SetInParent()
        for size in shape:
            dim = made.type.tensor_type.shape.dim.add()
            if isinstance(size, str):
                dim.dim_param = size
            elif size is not None:
                dim.dim_value = size
    return made


def sizes_of(kind: Any) -> Iterator[Any]:
    """Iterate over the sizes in a type."""
    pending = [kind]
    while pending:
        which = pending.pop()
        place = which.WhichOneof("value")
        inner: Any = getattr(which, place) if place else None
        if place in ("tensor_type", "sparse_tensor_type"):
            yield from inner.shape.dim
        elif place in ("sequence_type", "optional_type"):
            pending.append(inner.elem_type)
        elif place == "map_type":
            pending.append(inner.value_type)


def graphs_within(*bodies: Any) -> Iterator[Any]:
    """Iterate over graphs and functions and all graphs nested in them, in a fixed order."""
    pending = list(bodies)
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    pending.append(attribute.g)
                pending.extend(attribute.graphs)


def rename_values(names: Mapping[str, str], *graphs: Any, inputs: bool = False) -> None:
    """Rename values of graphs and of those nested in them; their inputs only if ``inputs``."""
    for graph in graphs_within(*graphs):
        fields = [graph.initializer, graph.output, *([graph.input] if inputs else [])]
        for value in (value for field in fields for value in field):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            for places in (node.input, node.output):
                for place, name in enumerate(places):
                    places[place] = names.get(name, name)


def used_by(node: Any) -> Iterator[str]:
    """Iterate over the values that a node uses, in its nested graphs too."""
    yield from node.input
    bodies = [value.g for value in node.attribute if value.HasField("g")]
    bodies += [body for value in node.attribute for body in value.graphs]
    inner = list(graphs_within(*bodies))
    if not inner:
        return
    own = {name for body in inner for child in body.node for name in child.output}
    own.update(value.name for body in inner for value in (*body.input, *body.initializer))
    for body in inner:
        names = (name for child in body.node for name in child.input)
        yield from (name for name in (*names, *(v.name for v in body.output)) if name not in own)


def external_tensors(model: Any) -> Iterator[Any]:
    """Iterate over all tensors of a model, at any depth, whose data is in other files."""
    return (tensor for tensor in _tensors(model) if tensor.data_location == EXTERNAL)


def put_inside(tensors: Iterable[Any], folder: Folder) -> None:
    """Read the external data of tensors into their messages."""
    for tensor in tensors:
        tensor.raw_data = folder.content(tensor.SerializeToString(), f"tensor {tensor.name!r}")
        tensor.ClearField("external_data")
        tensor.ClearField("data_location")


def empty(tensor: Any) -> None:
    """Take the elements and dimensions from a tensor; its name and element type stay."""
    name, kind = tensor.name, tensor.data_type
    tensor.Clear()
    tensor.name, tensor.data_type = name, kind
    tensor.dims.append(0)


def sealed(model: Any, *weights: Folder) -> Content:
    """Serialize a message that was made of others with those of their weights that it states."""
    arrays = {name: array for each in weights for name, array in each.arrays.items()}
    stated = {location_of(tensor) for tensor in external_tensors(model)}
    held = {name: array for name, array in arrays.items() if name in stated}
    mapped = [file for each in weights for file in each.mapped]
    return Content.of(model.SerializeToString(), Held(held, mapped))


def _tensors(model: Any) -> Iterator[Any]:
    training = [
        body for each in model.training_info for body in (each.initialization, each.algorithm)
    ]
    bodies = list(graphs_within(model.graph, *model.functions, *training))
    kind = type(model.graph)
    for graph in bodies:
        if isinstance(graph, kind):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
    values = [value for function in model.functions for value in function.attribute_proto]
    values += [value for body in bodies for node in body.node for value in node.attribute]
    for value in values:
        if value.HasField("t"):
            yield value.t
        yield from value.tensors
        sparse_tensors = list(value.sparse_tensors)
        if value.HasField("sparse_tensor"):
            sparse_tensors.append(value.sparse_tensor)
        for sparse in sparse_tensors:
            yield from (sparse.values, sparse.indices)
