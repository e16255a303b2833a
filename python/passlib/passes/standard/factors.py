"""mergeFactors: merges successive constant factors, and successive constant summands."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.book import apply_groups
from passlib.passes.standard.facts.kernels import Fused
from passlib.passes.standard.facts.nodes import Model, is_old_broadcast, operator

_REAL = ("float32", "float64")


@graph_pass(
    name="mergeFactors",
    dialects=["onnx"],
    triggers=["Add", "Mul", "Reciprocal", "Pow"],
    joins=Joins(["simplify"], after="foldLinear"),
)
def merge_factors(graph: Graph) -> None:
    """Merge two multiplications by constants, two additions of constants, and reciprocals."""
    model, fused = Model(graph), Fused(graph)
    _merge_constants(model, fused)
    apply_groups(graph, "mergeFactors", kept=fused.names)


def _merge_constants(model: Model, fused: Fused) -> None:
    graph = model.graph
    for node in graph.sorted("Add", "Mul"):
        if node in model.gone or not _is_plain(node):
            continue
        if all(operator(value.node) != operator(node) for value in node.inputs):
            continue
        outer = _constant_of(model, node)
        if outer is None:
            continue
        before = outer[0].node
        if outer[0].is_output or not outer[0].only_use or not _is_plain(before):
            continue
        inner = _constant_of(model, before)
        if operator(before) != operator(node) or inner is None:
            continue
        merged = _merged(operator(node), inner[1], outer[1])
        if merged is not None and node not in fused and before not in fused:
            made = model.add_constant(f"{node.name}_constant", merged)
            model.replace(node, model.add_like(node.outputs[0], node.op, [inner[0], made]))


def _is_plain(node: EditableNode) -> bool:
    return operator(node) in ("Mul", "Add") and not node.control_deps and not is_old_broadcast(node)


def _constant_of(
    model: Model, node: EditableNode
) -> tuple[EditableValue, np.ndarray[Any, Any]] | None:
    """Return the variable input and the constant."""
    left, right = node.inputs
    for value, other in ((left, right), (right, left)):
        array = model.array(other)
        if array is not None and model.array(value) is None and array.dtype.name in _REAL:
            return value, array
    return None


def _merged(
    name: str, inner: np.ndarray[Any, Any], outer: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any] | None:
    """Return the combined constant; None if it would be larger or extreme."""
    try:
        shape = np.broadcast_shapes(inner.shape, outer.shape)
    except ValueError:
        return None
    if inner.dtype != outer.dtype or shape not in (inner.shape, outer.shape):
        return None
    wide = inner.astype(np.float64), outer.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = wide[0] * wide[1] if name == "Mul" else wide[0] + wide[1]
        made: np.ndarray[Any, Any] = exact.astype(inner.dtype)
    if name == "Add" and np.any(np.abs(made) * 2 < np.maximum(np.abs(inner), np.abs(outer))):
        return None  # the summands take digits from each other
    return made if _is_tame(name, inner, outer, made) else None


def _is_tame(name: str, *arrays: np.ndarray[Any, Any]) -> bool:
    """Whether numbers are far from overflow, and factors from underflow.

    The sum of very different constants loses digits in another order.
    """
    sizes = [np.abs(array.astype(np.float64)) for array in arrays]
    if not all(np.isfinite(size).all() and (size < 1e4).all() for size in sizes):
        return False
    return name == "Add" or all((size > 1e-4).all() for size in sizes)
