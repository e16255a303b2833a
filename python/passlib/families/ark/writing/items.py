"""The ops of a file that is about to be written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

from passlib.families.ark.operators import FileOp
from passlib.families.ark.resolve import Resolved
from passlib.graph.node import Node

T = TypeVar("T")


class Item(NamedTuple):
    """An op of the new file.

    Attributes
    ----------
    resolved : Resolved
    original : FileOp or None
        The op in the file that was read; None for a new one.
    """

    resolved: Resolved
    original: FileOp | None

    @property
    def position(self) -> int:
        """Its position among the ops of its node or task."""
        return 0 if self.original is None else self.original.place.position


def written_sources(node: Node, written: Mapping[int, T]) -> Iterator[T]:
    """Find the nodes of the new file that a node needs, directly or through implied nodes.

    Parameters
    ----------
    node : Node
    written : mapping of int to object
        The objects to yield, by the ``id`` of their nodes.
    """
    pending = [*(entry.node for entry in node.inputs), *node.control_deps]
    seen: set[int] = set()
    while pending:
        source = pending.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        if id(source) in written:
            yield written[id(source)]
        else:
            pending += [entry.node for entry in source.inputs]
