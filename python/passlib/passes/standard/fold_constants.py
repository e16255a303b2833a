"""foldConstants: computes operators on constants."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, Protocol

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.files.limits import current_limits
from passlib.library.python import Graph
from passlib.passes.standard.facts.certainty import (
    ELEMENTWISE,
    Certainty,
    Inputs,
    certainty,
    uncertain_elements,
)
from passlib.passes.standard.facts.nodes import (
    Model,
    graphs_within,
    is_constant,
    is_copy,
    operator,
)
from passlib.passes.standard.facts.running import computed
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.families.constants import Weights

NOT_FOLDED = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike", "DequantizeLinear", "DynamicQuantizeLinear", "QuantizeLinear")
)  # fmt: skip
"""Operators that draw random numbers, and those that keep weights small as integers."""

_FARTHEST = 64
"""Operators after an uncertain one that are looked at."""


def fold_constants(graph: Graph, *, max_growth: int) -> None:
    """Replace operators on constants by their results.

    Operators of ONNX stay on values for which the specification and ONNX Runtime disagree. Where a
    host has no ONNX Runtime, the algorithm of the core runs, which computes fewer operators.
    """
    constants = _Onnx(graph) if graph.dialect == "onnx" else Weights(graph)
    _Folding(graph, constants, max_growth).run()


class _Constants(Protocol):
    """The constants of a dialect."""

    def is_constant(self, node: EditableNode) -> bool:
        """Whether the value of a variable is known."""

    def is_foldable(self, node: EditableNode) -> bool:
        """Whether an operator is a pure function of its inputs."""

    def certainty(self, node: EditableNode) -> Certainty | None:
        """Return a predicate on the inputs, whether all runtimes agree on the results; or None."""

    def nbytes(self, value: EditableValue) -> int:
        """Return the inferred size of a value in bytes, 0 if unknown."""

    def add(self, wish: str, array: np.ndarray[Any, Any]) -> EditableValue:
        """Add a weight under a free name."""

    def remove_unused(self, nodes: list[EditableNode]) -> None:
        """Remove unused nodes among these, each before its inputs."""


class _Onnx:
    def __init__(self, graph: Graph) -> None:
        self._model = Model(graph)
        self._shapes = Shapes(self._model)
        self.add = self._model.add_constant
        self.remove_unused = self._model.remove_unused

    def is_constant(self, node: EditableNode) -> bool:
        return is_constant(self._model.graph, node)

    def is_foldable(self, node: EditableNode) -> bool:
        return _is_foldable(node)

    def certainty(self, node: EditableNode) -> Certainty | None:
        return certainty(node)

    def nbytes(self, value: EditableValue) -> int:
        shape, dtype = self._shapes.shape(value), self._shapes.dtype(value)
        if shape is None or dtype is None or not all(isinstance(size, int) for size in shape):
            return 0
        return math.prod(int(size) for size in shape if isinstance(size, int)) * dtype.itemsize


class _Folding:
    def __init__(self, graph: Graph, constants: _Constants, max_growth: int) -> None:
        self._constants = constants
        self._graph = graph
        self._max_growth = max_growth
        self._arrays: dict[EditableValue, np.ndarray[Any, Any] | None] = {}
        self._kept: set[EditableNode] = set()
        self._certain: set[EditableNode] = set()
        # Constant while operators are chosen, which may take many rounds.
        self._weights: dict[EditableNode, int] = {}
        self._sources: dict[EditableNode, list[EditableNode]] = {}
        self._held: dict[EditableNode, int] = {}
        self._needs: dict[EditableValue, tuple[bool, list[EditableNode]]] = {}
        self._find()

    def _find(self) -> None:
        heads = set(self._graph.outputs)
        constant = set(filter(self._constants.is_constant, self._graph.sorted("null")))
        for node in self._graph.operators_on(constant):
            sources = [value.node for value in node.inputs]
            if not all(source in constant or source in self._sources for source in sources):
                continue
            if not self._constants.is_foldable(node) or is_copy(node):
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
        known = self._known()
        while known:
            wanted = self._border(known)
            kept = self._too_large(wanted, known) or self._uncertain(known)
            if not kept:
                self._compute(wanted)
                failed = {value.node for value in wanted if self._arrays[value] is None}
                kept = failed or self._too_large(wanted, known)
            if not kept:
                self._fold(wanted, known)
                return
            self._kept |= kept
            known = self._known()

    def _compute(self, values: list[EditableValue]) -> None:
        missing = [value for value in values if value not in self._arrays]
        for value, array in zip(missing, computed(self._graph, missing), strict=True):
            self._arrays[value] = array

    def _uncertain(self, known: dict[EditableNode, None]) -> set[EditableNode]:
        """Return the first operators on each path whose results depend on the runtime.

        Their inputs are computed first, because some of these operators crash the process.
        """
        while True:
            clear: set[EditableNode] = set()
            asked = []
            for node in known:
                if not clear.issuperset(self._sources[node]):
                    continue
                if node in self._certain or self._constants.certainty(node) is None:
                    clear.add(node)
                else:
                    asked.append(node)
            if not asked:
                return set()
            values = [value for node in asked for value in node.inputs]
            self._compute([value for value in values if value.node in known])
            found = {node for node in asked if not self._is_certain(node, known)}
            self._certain.update(node for node in asked if node not in found)
            if found:
                return found

    def _is_certain(self, node: EditableNode, known: Collection[EditableNode]) -> bool:
        rule = self._constants.certainty(node)
        inputs = [
            self._arrays[value] if value in self._arrays else self._graph.args.get(value.node.name)
            for value in node.inputs
        ]
        return rule is None or rule(node, inputs) or self._is_hidden(node, inputs, known)

    def _is_hidden(
        self, node: EditableNode, inputs: Inputs, known: Collection[EditableNode]
    ) -> bool:
        """Whether each Where behind a node chooses none of its elements that are uncertain.

        Operators between them compute each element by itself, as for the positions of T5: those
        of distance 0 are the logarithm of 0 as an integer, in place of which the distance counts.
        """
        first = uncertain_elements(node, inputs)
        if first is None:
            return False
        pending = [(node.outputs[0], first)]
        for _ in range(_FARTHEST):
            if not pending:
                return True
            value, uncertain = pending.pop()
            is_head, users = self._needs.get(value, (True, []))
            if is_head or not users:
                return False
            for user in users:
                left = self._left(user, value, uncertain, known)
                if left is None:
                    return False
                if left.any():
                    pending.append((user.outputs[0], left))
        return False

    def _left(
        self,
        user: EditableNode,
        value: EditableValue,
        uncertain: np.ndarray[Any, Any],
        known: Collection[EditableNode],
    ) -> np.ndarray[Any, Any] | None:
        """Return the elements of a result that uncertain ones of an input reach, or None."""
        if operator(user) not in ("Where", *ELEMENTWISE) or user not in self._sources:
            return None
        arrays = [self._certain_array(each, known) for each in user.inputs if each != value]
        if any(array is None for array in arrays):
            return None
        shapes = [array.shape for array in arrays if array is not None]
        try:
            shape = np.broadcast_shapes(uncertain.shape, *shapes)
        except ValueError:
            return None
        if math.prod(shape) > current_limits().largest_tensor():
            return None
        reached = np.broadcast_to(uncertain, shape)
        if operator(user) != "Where":
            return reached
        places = [place for place, each in enumerate(user.inputs) if each == value]
        if places not in ([1], [2]):
            return None
        chosen = self._certain_array(user.inputs[0], known)
        if chosen is None:
            return None
        left: np.ndarray[Any, Any] = reached & (chosen if places == [1] else ~chosen)
        return left

    def _certain_array(
        self, value: EditableValue, known: Collection[EditableNode]
    ) -> np.ndarray[Any, Any] | None:
        """Return a constant that is not too large, and on which all runtimes agree."""
        if value.node not in self._sources:
            return self._graph.args.get(value.node.name)
        if value.node not in known:
            return None
        pending, seen = [value.node], set()
        while pending:
            node = pending.pop()
            if node in seen:
                continue
            seen.add(node)
            if node not in self._certain and self._constants.certainty(node) is not None:
                return None
            pending += self._sources[node]
        self._compute([value])
        return self._arrays[value]

    def _known(self) -> dict[EditableNode, None]:
        """Return the operators to fold, in the order of the graph."""
        known: dict[EditableNode, None] = {}
        free = current_limits().largest_tensor()
        for node, sources in self._sources.items():
            if node in self._kept or not all(source in known for source in sources):
                continue
            if node not in self._held:
                self._held[node] = sum(map(self._constants.nbytes, node.outputs))
            if self._held[node] <= free:
                free -= self._held[node]
                known[node] = None
        return known

    def _border(self, known: dict[EditableNode, None]) -> list[EditableValue]:
        """Return the results of these operators that other operators or outputs use."""
        return [
            value
            for value, (is_head, users) in self._needs.items()
            if value.node in known and (is_head or any(user not in known for user in users))
        ]

    def _too_large(
        self, wanted: list[EditableValue], known: dict[EditableNode, None]
    ) -> set[EditableNode]:
        """Return the operator with the largest result if the results are too large together."""
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
        """Return the size of a result in bytes, inferred if it is not computed yet."""
        array = self._arrays.get(value)
        if array is not None:
            return int(array.nbytes)
        return self._constants.nbytes(value)

    def _fold(self, wanted: list[EditableValue], known: dict[EditableNode, None]) -> None:
        for value in wanted:
            node = value.node
            array = self._arrays[value]
            assert array is not None
            if operator(node) == "Identity" and node.inputs[0].node in self._weights:
                made = node.inputs[0]
            else:
                name = node.name if node.num_outputs < 2 else f"{node.name}_{value.index}"
                made = self._constants.add(f"{name}_value", array)
            self._graph.replace(value, made)
        self._constants.remove_unused(list(reversed(known)))


def _is_foldable(node: EditableNode) -> bool:
    operators = {operator(node)}
    for graph in graphs_within(node):
        operators.update(operator(inner) for inner in graph.nodes if not inner.is_variable)
    foreign = any(name in NOT_FOLDED or "." in name for name in operators)
    return not foreign and not node.control_deps
