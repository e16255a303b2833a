"""Values that are computed as in the file, from inputs that are: what it says of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from passlib.dialects.onnx.document import ABSENT, OUTER, Document, OriginalNode
from passlib.dialects.onnx.opsets import plain
from passlib.graph.attribute_text import parse_position
from passlib.graph.node import VARIABLE

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.variables import LevelVariables

__all__ = ["SettledValues"]

_MATRIX = 2
"""From so many axes on elements never tell the shape of anything, for shapes are vectors."""

_WITH_BIAS = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2}
"""Operators whose last input has no part in the type of the output, and its number."""

_WEIGHTED = frozenset(("Add", "BatchNormalization", "Div", "MatMul", "Mul", "PRelu", "Sub"))
"""More operators for whose output only the types of their inputs count, not the elements."""


class SettledValues:
    """Collects the settled values of one graph; nodes are given each after its inputs.

    Parameters
    ----------
    document : Document
    around : sequence of (str or None)
        Names in the file of the inputs of the node around this graph; None for what is not settled.
    template : onnx.GraphProto
        The graph in the file.
    """

    def __init__(self, document: Document, around: Sequence[str | None], template: Any) -> None:
        self._document = document
        self._around = around
        self._template = template
        self._names: dict[tuple[int, int], str] = {}
        self._other_elements: set[tuple[int, int]] = set()

    def origins(self, entries: Sequence[tuple[int, int, int]]) -> list[str | None]:
        """Give the name in the file of each value; None for what is not settled, or has changed."""
        keys = [(node, output) for node, output, _ in entries]
        return [None if key in self._other_elements else self._names.get(key) for key in keys]

    def __contains__(self, key: tuple[int, int]) -> bool:
        return key in self._names

    def add_variable(
        self, position: int, node: NodeTuple, claim: str, level: LevelVariables
    ) -> None:
        """Take a variable in.

        Parameters
        ----------
        position : int
        node
            As `_core.Graph` gives it.
        claim : str
            Its `ID` if it stands for one of the file.
        level : LevelVariables
            What constants are now.
        """
        name, outer = node[1], node[2].get(OUTER)
        if name == ABSENT:
            self._names[position, 0] = ""
        elif outer is not None:
            slot = parse_position(outer)
            if slot is not None and name in self._around[slot : slot + 1]:
                self._names[position, 0] = name
        elif claim in self._document.inputs:
            self._names[position, 0] = str(self._document.inputs[claim][0].name)
        elif claim in self._document.tensors and claim not in level.retyped:
            tensor = self._document.tensors[claim]
            self._names[position, 0] = tensor.name
            if claim in level.changed and tensor.array is not None and tensor.array.ndim < _MATRIX:
                self._other_elements.add((position, 0))

    def add_operator(
        self, position: int, node: NodeTuple, original: OriginalNode | None, written: Any
    ) -> None:
        """Take an operator in.

        Parameters
        ----------
        position : int
        node
            As `_core.Graph` gives it.
        original : OriginalNode, optional
            What it was in the file.
        written : onnx.NodeProto
            What it is now.
        """
        if original is None or node[0] == VARIABLE or node[0] != original.proto.op_type:
            return
        if node[2] != original.attrs or not self._takes_the_same(node, original.proto):
            return
        if node[6] and written is not original.proto:
            return  # what its nested graphs give out is seen no further
        passed_on = any((entry[0], entry[1]) in self._other_elements for entry in node[3])
        for index, name in enumerate(original.proto.output):
            self._names[position, index] = str(name)
            if passed_on and name not in self._described:
                self._other_elements.add((position, index))  # it may tell a shape further on

    def _takes_the_same(self, node: NodeTuple, proto: Any) -> bool:
        """Whether the inputs are such that the types of the outputs are those of the file."""
        formal = proto.input[:]
        entries = [entry[:2] for entry in node[3]]
        operator = node[0] if not plain(proto.domain) else ""
        if _WITH_BIAS.get(operator) == len(entries) - 1 == len(formal):
            entries.pop()
        if node[6]:
            return self.origins(node[3])[: len(formal)] == formal and all(
                key in self._names and key not in self._other_elements for key in entries
            )
        by_elements = operator not in _WEIGHTED and operator not in _WITH_BIAS
        return len(entries) == len(formal) and all(
            self._stands_for(key, name, by_elements=by_elements)
            for key, name in zip(entries, formal, strict=True)
        )

    def _stands_for(self, key: tuple[int, int], name: str, *, by_elements: bool) -> bool:
        origin = self._names.get(key)
        if origin == name:
            return not by_elements or key not in self._other_elements
        kind = self._described.get(origin or "")
        return kind is not None and kind == self._described.get(name)

    @cached_property
    def _described(self) -> dict[str, bytes]:
        """Types of values with at least two axes of known sizes, by their names in the file."""
        types = {}
        for value in (*self._template.value_info, *self._template.input, *self._template.output):
            sizes = value.type.tensor_type.shape.dim
            if len(sizes) >= _MATRIX and all(d.dim_value > 0 or d.dim_param for d in sizes):
                types[str(value.name)] = value.type.SerializeToString()
        return types
