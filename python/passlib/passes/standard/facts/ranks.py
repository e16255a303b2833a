"""Whether a model fails if a value has a certain number of axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.dialects.onnx.attributes import OUTER
from passlib.passes.standard.facts.nodes import given, integers, operator
from passlib.passes.standard.facts.rules.contents import whole
from passlib.passes.standard.facts.shapes import Shapes

_SAME = frozenset(
    ("Identity", "Relu", "Sigmoid", "Tanh", "Cast", "Neg", "Abs", "Sqrt", "Exp", "Log", "Erf",
     "LeakyRelu", "Clip", "Softmax", "Dropout")
)  # fmt: skip

_RANGE = ("start", "end")

_WANTED = {"LSTM": 3, "GRU": 3, "RNN": 3, "Gemm": 2}
"""The number of axes that an operator needs of its first input."""

Constant = Callable[[EditableNode], "np.ndarray[Any, Any] | None"]


def fails_with_rank(
    value: EditableValue,
    rank: int,
    order: Sequence[EditableNode],
    shapes: Shapes,
    nested_constant: Constant,
) -> bool:
    """Whether a node that always runs fails if a value has this number of axes.

    Parameters
    ----------
    value : EditableValue
        Of the main graph.
    rank : int
    order : sequence of EditableNode
        The nodes of the main graph, each after its inputs.
    shapes : Shapes
    nested_constant : callable
        Returns the elements of a constant of a nested graph.
    """
    trial = _Trial(shapes, nested_constant)
    trial.ranks[value] = rank
    return any(trial.run(node) for node in order if node != value.node)


class _Trial:
    """Ranks, and numbers that follow from them, as they would be."""

    def __init__(self, shapes: Shapes, nested_constant: Constant) -> None:
        self.ranks: dict[EditableValue, int] = {}
        self._lengths: dict[EditableValue, int] = {}
        self._numbers: dict[EditableValue, int] = {}
        self._shapes = shapes
        self._nested_constant = nested_constant

    def run(self, node: EditableNode) -> bool:
        """Follow one node of the main graph; return whether it fails."""
        if node.is_variable or not any(self._concerns(value) for value in node.inputs):
            return False
        if self._fails(node):
            return True
        self._follow(node, {})
        return False

    def _concerns(self, value: EditableValue) -> bool:
        return value in self.ranks or value in self._numbers or value in self._lengths

    def _fails(self, node: EditableNode) -> bool:
        have = self.ranks.get(node.inputs[0])
        name = operator(node)
        wanted = _WANTED.get(name)
        if name in ("Conv", "ConvTranspose"):
            wanted = self._shapes.rank(node.inputs[1])
        return have is not None and wanted is not None and have != wanted

    def _follow(self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]) -> None:
        """Note what is known of the results of a node; ``outer`` leads out of nested graphs."""

        def seen(value: EditableValue) -> EditableValue:
            return outer.get(value.node, value)

        name, result = operator(node), node.outputs[0]
        if name == "If":
            self._take_branch(node, outer)
            return
        rank = self.ranks.get(seen(node.inputs[0])) if node.inputs else None
        numbers = [self._number(seen(value)) for value in node.inputs]
        if name in _SAME and rank is not None:
            self.ranks[result] = rank
        elif name in ("Squeeze", "Unsqueeze") and rank is not None:
            axes = self._axes(node, outer)
            if axes is not None:
                self.ranks[result] = rank + (len(axes) if name == "Unsqueeze" else -len(axes))
        elif name == "Shape" and rank is not None and node.attrs.keys().isdisjoint(_RANGE):
            self._lengths[result] = rank
        elif name == "Size" and seen(node.inputs[0]) in self._lengths:
            self._numbers[result] = self._lengths[seen(node.inputs[0])]
        elif name == "Equal" and None not in numbers:
            self._numbers[result] = int(numbers[0] == numbers[1])
        elif name == "Not" and None not in numbers:
            self._numbers[result] = int(not numbers[0])

    def _number(self, value: EditableValue) -> int | None:
        if value in self._numbers:
            return self._numbers[value]
        content = self._shapes.content(value)
        if content is None or content.size != 1 or not isinstance(content.flat[0], int):
            return None
        return content.flat[0]

    def _axes(
        self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]
    ) -> list[int] | None:
        stated = integers(node, "axes")
        if stated is not None:
            return stated
        value = given(node, 1)
        if value is None:
            return None
        array = None if value.node in outer else self._nested_constant(value.node)
        if array is not None:
            return [int(item) for item in array.reshape(-1)]
        return whole(outer.get(value.node, value), self._shapes)

    def _take_branch(self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]) -> None:
        condition = self._number(outer.get(node.inputs[0].node, node.inputs[0]))
        if condition is None:
            return
        stated = node.attrs["then_branch" if condition else "else_branch"]
        branch = node.subgraphs[int(stated.partition("[")[2].rstrip("]"))]
        inside = {
            inner: outer.get(source.node, source)
            for inner in branch.nodes
            if inner.is_variable and OUTER in inner.attrs
            for source in (node.inputs[int(inner.attrs[OUTER])],)
        }
        for inner in branch.sorted():
            if not inner.is_variable:
                self._follow(inner, inside)
        for result, value in zip(node.outputs, branch.outputs, strict=False):
            rank = self.ranks.get(inside.get(value.node, value))
            if rank is not None:
                self.ranks[result] = rank
