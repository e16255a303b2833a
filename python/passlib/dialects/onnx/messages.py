"""Walks over the messages of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from passlib.dialects.onnx.external import EXTERNAL

__all__ = ["all_graphs", "all_nodes", "external_tensors", "graphs_within"]


def all_graphs(model: Any) -> Iterator[Any]:
    """Iterate over the main graph, those of training, and all that are nested anywhere."""
    kind = type(model.graph)
    return (body for body in graphs_within(*_bodies(model)) if isinstance(body, kind))


def all_nodes(model: Any) -> Iterator[Any]:
    """Iterate over the nodes of all graphs and functions."""
    return (node for body in graphs_within(*_bodies(model)) for node in body.node)


def _bodies(model: Any) -> list[Any]:
    bodies = [model.graph, *model.functions]
    for training in model.training_info:
        bodies += [training.initialization, training.algorithm]
    return bodies


def graphs_within(*bodies: Any) -> Iterator[Any]:
    """Iterate over graphs and functions and what is nested in them, always in the same order."""
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
    """Iterate over all tensors, wherever they stand, whose data is in other files."""
    return (tensor for tensor in _tensors(model) if tensor.data_location == EXTERNAL)


def _tensors(model: Any) -> Iterator[Any]:
    for graph in all_graphs(model):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    values = [value for function in model.functions for value in function.attribute_proto]
    values += [value for node in all_nodes(model) for value in node.attribute]
    for value in values:
        if value.HasField("t"):
            yield value.t
        yield from value.tensors
        sparse_tensors = list(value.sparse_tensors)
        if value.HasField("sparse_tensor"):
            sparse_tensors.append(value.sparse_tensor)
        for sparse in sparse_tensors:
            yield from (sparse.values, sparse.indices)
