"""Types of values that a pass may have changed, inferred anew."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from passlib.dialects.onnx.messages import copy_of, graphs_within
from passlib.dialects.onnx.soundness import inferred
from passlib.errors import GraphError

__all__ = ["renew_types"]


def renew_types(model: Any, doubtful: set[str]) -> None:
    """Infer the types of values that may have changed, by ONNX's inference.

    Where it fails, annotations are removed; outputs of graphs keep their description unless
    inference contradicts it.

    Parameters
    ----------
    model : onnx.ModelProto
    doubtful : set of str
        Names of values in any of its graphs.
    """
    if not doubtful:
        return
    bare = copy_of(model)
    for graph in graphs_within(bare.graph):
        _replace(graph.value_info, [v for v in graph.value_info if v.name not in doubtful])
        for value in graph.output:
            if value.name in doubtful:
                value.ClearField("type")
    with suppress(GraphError):
        bare = inferred(bare)
    for graph, renewed in zip(graphs_within(model.graph), graphs_within(bare.graph), strict=True):
        found = {v.name: v.type for v in (*renewed.value_info, *renewed.output)}
        found = {name: kind for name, kind in found.items() if kind.WhichOneof("value")}
        for value in graph.value_info:
            if value.name in doubtful and value.name in found:
                value.type.CopyFrom(found[value.name])
        for value in graph.output:
            if value.name in doubtful and value.name in found:
                _renew(value, found[value.name])
        known = [v for v in graph.value_info if v.name not in doubtful or v.name in found]
        if len(known) < len(graph.value_info):
            _replace(graph.value_info, known)


def _replace(field: Any, items: Sequence[Any]) -> None:
    copies = [copy_of(item) for item in items]
    del field[:]
    field.extend(copies)


def _renew(value: Any, kind: Any) -> None:
    """Set the type of an output, unless the stated one agrees, which may be more precise."""
    stated = value.type.tensor_type
    new = kind.tensor_type
    if (
        value.type.WhichOneof("value") == kind.WhichOneof("value") == "tensor_type"
        and stated.elem_type == new.elem_type
        and stated.HasField("shape")
        and _agree(stated.shape.dim, new.shape.dim if new.HasField("shape") else None)
    ):
        return
    value.type.CopyFrom(kind)


def _agree(stated: Sequence[Any], new: Sequence[Any] | None) -> bool:
    if new is None:
        return True
    return len(stated) == len(new) and all(
        left.dim_value == right.dim_value
        for left, right in zip(stated, new, strict=True)
        if left.HasField("dim_value") and right.HasField("dim_value")
    )
