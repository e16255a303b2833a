"""foldConstants: operators on constants become constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, graphs_within, is_constant, operator
from passlib.passes.standard.facts.running import computed

__all__ = ["NOT_FOLDED", "fold_constants"]

NOT_FOLDED = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear")
)  # fmt: skip
"""Operators that draw random numbers, and those that keep weights small as integers."""

_MEGABYTE = 1_000_000

Key = tuple[EditableNode, int]


@graph_pass(name="foldConstants", dialects=["onnx"])
def fold_constants(graph: Graph, *, max_growth: int = _MEGABYTE) -> None:
    """Replace operators whose inputs are all constants by their results.

    Parameters
    ----------
    max_growth : int
        By how many bytes the new weights may exceed those that are no longer needed. Results
        that would exceed it stay operators, the largest first.
    """
    _Folding(graph, max_growth).run()


class _Folding:
    """One run of the pass."""

    def __init__(self, graph: Graph, max_growth: int) -> None:
        self._model = Model(graph)
        self._graph = graph
        self._max_growth = max_growth
        self._order = graph.sorted()
        self._arrays: dict[Key, np.ndarray[Any, Any] | None] = {}
        self._kept: set[EditableNode] = set()

    def run(self) -> None:
        known = self._known()
        while known:
            wanted = self._border(known)
            missing = [value for value in wanted if (value.node, value.index) not in self._arrays]
            for value, array in zip(missing, computed(self._graph, missing), strict=True):
                self._arrays[value.node, value.index] = array
            failed = {v.node for v in wanted if self._arrays[v.node, v.index] is None}
            failed = failed or self._too_large(wanted, known)
            if not failed:
                self._fold(wanted, known)
                return
            self._kept |= failed
            known = self._known()

    def _known(self) -> set[EditableNode]:
        """Return the operators that depend on constants alone."""
        known: set[EditableNode] = set()
        for node in self._order:
            if node.is_variable or node in self._kept or not _is_foldable(node):
                continue
            if all(
                value.node in known or is_constant(self._graph, value.node) for value in node.inputs
            ):
                known.add(node)
        return known

    def _border(self, known: set[EditableNode]) -> list[EditableValue]:
        """Return the results of these operators that others, or the model's outputs, need."""
        heads = set(self._graph.outputs)
        return [
            value
            for node in self._order
            if node in known
            for value in node.outputs
            if value in heads or any(user not in known for user, _ in value.uses)
        ]

    def _too_large(
        self, wanted: list[EditableValue], known: set[EditableNode]
    ) -> set[EditableNode]:
        """Return the operator of the largest result if together they are too large."""
        heads = {value.node for value in self._graph.outputs}
        freed = sum(
            self._graph.args[node.name].nbytes
            for node in self._order
            if node.name in self._graph.args
            and is_constant(self._graph, node)
            and node not in heads
            and node.users
            and all(user in known for user in node.users)
        )
        sizes = [(self._size(value), value.node) for value in wanted]
        if sum(size for size, _ in sizes) - freed <= self._max_growth:
            return set()
        return {max(sizes, key=lambda item: item[0])[1]}

    def _size(self, value: EditableValue) -> int:
        array = self._arrays[value.node, value.index]
        return 0 if array is None else int(array.nbytes)

    def _fold(self, wanted: list[EditableValue], known: set[EditableNode]) -> None:
        for value in wanted:
            node = value.node
            name = node.name if node.num_outputs < 2 else f"{node.name}_{value.index}"
            array = self._arrays[node, value.index]
            self._graph.replace(value, self._model.add_constant(f"{name}_value", array))
        self._model.remove_unused([node for node in reversed(self._order) if node in known])


def _is_foldable(node: EditableNode) -> bool:
    operators = {operator(node)}
    for graph in graphs_within(node):
        operators.update(operator(inner) for inner in graph.nodes if not inner.is_variable)
    foreign = any(name in NOT_FOLDED or "." in name for name in operators)
    return not foreign and not node.control_deps
