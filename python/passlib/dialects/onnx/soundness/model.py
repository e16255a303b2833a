"""Checks of all nodes of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.calls import check_calls
from passlib.dialects.onnx.soundness.forms import complaint_about
from passlib.dialects.onnx.tensors import kind_of
from passlib.errors import GraphError


def check_model(model: Any) -> None:
    """Check the nodes of a model, in nested graphs and functions too.

    Parameters
    ----------
    model : onnx.ModelProto

    Raises
    ------
    GraphError
        A node does not have the form that its operator requires, or functions call themselves.
    """
    versions = versions_of(model.opset_import) or {"": 1}
    functions = {(f.domain, f.name) for f in model.functions}
    _check_bodies([model.graph], versions, functions)
    for function in model.functions:
        _check_bodies([function], versions_of(function.opset_import) or versions, functions)
    check_calls(model)


def versions_of(imports: Iterable[Any]) -> dict[str, int]:
    """Return the versions of operator sets by domain."""
    return {
        schema.plain(entry.domain): min(max(int(entry.version), 0), schema.INT_MAX)
        for entry in imports
    }


def _check_bodies(
    bodies: list[Any], versions: Mapping[str, int], functions: set[tuple[str, str]]
) -> None:
    for graph in graphs_within(*bodies):
        for tensor in getattr(graph, "initializer", ()):
            if any(size < 0 for size in tensor.dims):
                raise GraphError(f"initializer {tensor.name!r} has a negative dimension")
            if kind_of(tensor) in ("?", "undefined"):
                raise GraphError(
                    f"initializer {tensor.name!r}: ONNX has no element type {tensor.data_type}"
                )
        for number, node in enumerate(graph.node):
            if (node.domain, node.op_type) in functions:
                continue
            message = complaint_about(node, versions)
            if message:
                title = repr(node.name) if node.name else str(number)
                raise GraphError(f"node {title} ({node.op_type}): {message}")
