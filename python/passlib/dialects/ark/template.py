"""What a model keeps of the file it was read from, for writing it back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import passlib._core as _core
from passlib.dialects.ark.document import Document
from passlib.dialects.ark.operators import FileOp

__all__ = ["Template"]


@dataclass(frozen=True)
class Template:
    """The ARK file that a model was read from.

    Attributes
    ----------
    document : Document
    ops : dict of str to FileOp
        By the ``__id__`` of their nodes.
    names : dict of str to str
        Names of their nodes in the graph, by the same key.
    graph : _core.Graph
        The graph as it was read; must not be changed.
    positions : dict of int to int
        Position of each node of a model file by its Id.
    needs : list of set of int
        For each of them, the nodes that its ops need, through tensors or otherwise.
    control : list of set of int
        The part of ``needs`` that no tensor shows.
    """

    document: Document
    ops: dict[str, FileOp]
    names: dict[str, str]
    graph: _core.Graph
    positions: dict[int, int]
    needs: list[set[int]]
    control: list[set[int]]

    @cached_property
    def nodes(self) -> list[_core.NodeTuple]:
        """The graph's nodes."""
        return self.graph.nodes()
