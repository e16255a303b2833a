"""foldConstants: operators on constants become constants."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, graphs_within, is_constant, operator
from passlib.passes.standard.facts.running import computed
from passlib.passes.standard.facts.shapes import Shapes

__all__ = ["NOT_FOLDED", "fold_constants"]

NOT_FOLDED = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear")
)  # fmt: skip
"""Operators that draw random numbers, and those that keep weights small as integers."""

_MEGABYTE = 1_000_000


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
        self._arrays: dict[EditableValue, np.ndarray[Any, Any] | None] = {}
        self._kept: set[EditableNode] = set()
        # What does not change while operators are chosen, which may take many rounds.
        self._weights: dict[EditableNode, int] = {}
        self._sources: dict[EditableNode, list[EditableNode]] = {}
        self._needs: dict[EditableValue, tuple[bool, list[EditableNode]]] = {}
        self._find()

    def _find(self) -> None:
        """Find the operators that depend on constants alone."""
        heads = set(self._graph.outputs)
        constant: set[EditableNode] = set()
        for node in self._graph.sorted():
            if node.is_variable:
                if is_constant(self._graph, node):
                    constant.add(node)
                continue
            sources = [value.node for value in node.inputs]
            if not all(source in constant or source in self._sources for source in sources):
                continue
            if not _is_foldable(node):
                continue
            self._sources[node] = [source for source in sources if source in self._sources]
            for value in node.outputs:
                self._needs[value] = (value in heads, [user for user, _ in value.uses])
            for source in sources:
                if source in constant and source.name in self._graph.args:
                    self._weights[source] = self._graph.args[source.name].nbytes
        head_nodes = {value.node for value in heads}
        self._users = {source: source.users for source in self._weights if source not in head_nodes}

    def run(self) -> None:
        if not self._sources:
            return
        self._shapes = Shapes(self._model)
        known = self._known()
        while known:
            wanted = self._border(known)
            large = self._too_large(wanted, known)
            missing = [] if large else [value for value in wanted if value not in self._arrays]
            for value, array in zip(missing, computed(self._graph, missing), strict=True):
                self._arrays[value] = array
            failed = {v.node for v in wanted if self._arrays.get(v, v) is None}
            kept = large or failed or self._too_large(wanted, known)
            if not kept:
                self._fold(wanted, known)
                return
            self._kept |= kept
            known = self._known()

    def _known(self) -> dict[EditableNode, None]:
        """Return the operators that are to be folded, in the order of the graph."""
        known: dict[EditableNode, None] = {}
        for node, sources in self._sources.items():
            if node not in self._kept and all(source in known for source in sources):
                known[node] = None
        return known

    def _border(self, known: dict[EditableNode, None]) -> list[EditableValue]:
        """Return the results of these operators that others, or the model's outputs, need."""
        return [
            value
            for value, (is_head, users) in self._needs.items()
            if value.node in known and (is_head or any(user not in known for user in users))
        ]

    def _too_large(
        self, wanted: list[EditableValue], known: dict[EditableNode, None]
    ) -> set[EditableNode]:
        """Return the operator of the largest result if together they are too large."""
        freed = sum(
            self._weights[node]
            for node, users in self._users.items()
            if all(user in known for user in users)
        )
        sizes = [(self._size(value), value.node) for value in wanted]
        if sum(size for size, _ in sizes) - freed <= self._max_growth:
            return set()
        return {max(sizes, key=lambda item: item[0])[1]}

    def _size(self, value: EditableValue) -> int:
        """Return the bytes of a result; as inferred if it is not computed yet."""
        array = self._arrays.get(value)
        if array is not None:
            return int(array.nbytes)
        shape, dtype = self._shapes.shape(value), self._shapes.dtype(value)
        if shape is None or dtype is None or not all(isinstance(size, int) for size in shape):
            return 0
        return math.prod(int(size) for size in shape if isinstance(size, int)) * dtype.itemsize

    def _fold(self, wanted: list[EditableValue], known: dict[EditableNode, None]) -> None:
        for value in wanted:
            node = value.node
            name = node.name if node.num_outputs < 2 else f"{node.name}_{value.index}"
            made = self._model.add_constant(f"{name}_value", self._arrays[value])
            self._graph.replace(value, made)
        self._model.remove_unused(list(reversed(known)))


def _is_foldable(node: EditableNode) -> bool:
    operators = {operator(node)}
    for graph in graphs_within(node):
        operators.update(operator(inner) for inner in graph.nodes if not inner.is_variable)
    foreign = any(name in NOT_FOLDED or "." in name for name in operators)
    return not foreign and not node.control_deps
