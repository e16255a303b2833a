"""Values that are computed as in the file, from inputs that are: what it says of them holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from passlib.dialects.onnx.document import ABSENT, OUTER, Document, OriginalNode
from passlib.node import VARIABLE

if TYPE_CHECKING:
    from passlib._core import NodeTuple

__all__ = ["SettledValues"]


class SettledValues:
    """Collects the settled values of one graph; nodes are given each after its inputs.

    Parameters
    ----------
    document : Document
    around : sequence of (str or None)
        Names in the file of the inputs of the node around this graph; None for what is not settled.
    """

    def __init__(self, document: Document, around: Sequence[str | None]) -> None:
        self._document = document
        self._around = around
        self._names: dict[tuple[int, int], str] = {}

    def origins(self, entries: Sequence[tuple[int, int, int]]) -> list[str | None]:
        """Give the name in the file of each value; None for what is not settled."""
        return [self._names.get((node, output)) for node, output, _ in entries]

    def __contains__(self, key: tuple[int, int]) -> bool:
        return key in self._names

    def add_variable(
        self, position: int, node: NodeTuple, claim: str, altered: Collection[str]
    ) -> None:
        """Take a variable in.

        Parameters
        ----------
        position : int
        node
            As `_core.Graph` gives it.
        claim : str
            Its `ID` if it stands for one of the file.
        altered : collection of str
            Constants with new elements, by `ID`.
        """
        name, outer = node[1], node[2].get(OUTER)
        if name == ABSENT:
            self._names[position, 0] = ""
        elif outer is not None:
            if outer.isdigit() and name in self._around[int(outer) : int(outer) + 1]:
                self._names[position, 0] = name
        elif claim in self._document.inputs:
            self._names[position, 0] = str(self._document.inputs[claim][0].name)
        elif claim in self._document.tensors and claim not in altered:
            self._names[position, 0] = self._document.tensors[claim].name

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
        origins = self.origins(node[3])
        formal = original.proto.input[:]
        same = origins[: len(formal)] == formal and None not in origins
        if node[6]:  # what its nested graphs give out is seen no further
            same = same and written is original.proto
        if same and node[2] == original.attrs:
            for index, name in enumerate(original.proto.output):
                self._names[position, index] = str(name)
