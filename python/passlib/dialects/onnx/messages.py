"""Messages of an ONNX model: walks over them, copies, and new descriptions of values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from passlib.dialects.onnx.reading import EXTERNAL
from passlib.files.optional import require


def copy_of(message: Any) -> Any:
    """Return a deep copy of a message."""
    made = type(message)()
    made.CopyFrom(message)
    return made


def with_name(message: Any, name: str, field: str = "name") -> Any:
    """Return a copy with another name, or the message itself if it already has that name."""
    if getattr(message, field) == name:
        return message
    made = copy_of(message)
    setattr(made, field, name)
    return made


def value_info(name: str, code: int | None, shape: Sequence[int | None] | None) -> Any:
    """Make a ValueInfoProto for a tensor.

    Parameters
    ----------
    name : str
    code : int or None
        ONNX's number of the element type, if known.
    shape : sequence of (int or None), optional
        None if unknown, as are sizes that are None.
    """
    made = require("onnx", extra="onnx").ValueInfoProto(name=name)
    if code is not None:
        made.type.tensor_type.elem_type = code
    if shape is not None:
        made.type.tensor_type.shape.SetInParent()
        for size in shape:
            dim = made.type.tensor_type.shape.dim.add()
            if size is not None:
                dim.dim_value = size
    return made


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


def external_tensors(model: Any) -> Iterator[Any]:
    """Iterate over all tensors of a model, at any depth, whose data is in other files."""
    return (tensor for tensor in _tensors(model) if tensor.data_location == EXTERNAL)


def _tensors(model: Any) -> Iterator[Any]:
    bodies = list(graphs_within(*_bodies(model)))
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


def _bodies(model: Any) -> list[Any]:
    bodies = [model.graph, *model.functions]
    for training in model.training_info:
        bodies += [training.initialization, training.algorithm]
    return bodies
