"""What a model keeps of the file it was read from, for writing it back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import passlib._core as _core
from passlib.families.ark.document import Document
from passlib.families.ark.operators import FileOp
from passlib.families.ark.reading.parts import Parts, read_parts


@dataclass(frozen=True)
class Template:
    """The ARK file that a model was read from.

    Attributes
    ----------
    text : bytes
    graph : _core.Graph
        The graph as it was read; must not be changed.
    rank, world_size : int
        The rank that the file is for, and the number of ranks.
    """

    text: bytes
    graph: _core.Graph
    rank: int
    world_size: int

    @cached_property
    def parts(self) -> Parts:
        """The parts of the file, which are needed for writing a changed model."""
        return replace(read_parts(self.text), graph=self.graph)

    @property
    def document(self) -> Document:
        """The file as parsed."""
        return self.parts.document

    @property
    def ops(self) -> dict[str, FileOp]:
        """The ops of the file, by the ``__id__`` of their nodes."""
        return self.parts.ops

    @cached_property
    def nodes(self) -> list[_core.NodeTuple]:
        """The graph's nodes."""
        return self.graph.nodes()
