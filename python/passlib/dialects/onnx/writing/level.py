"""One graph of a model while it is written, next to the graph in the file that it stands for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from passlib import _core
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.keys import ID
from passlib.dialects.onnx.originals import OriginalNode
from passlib.dialects.onnx.writing.outputs import Present
from passlib.files.optional import require
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import stable_order

__all__ = ["Level", "Surroundings"]

_WITHIN = re.compile(r"\.(?:(?:input|initializer|sparse)\.)?\d+$")
"""The part of an `ID` that follows the place of its nested graph."""


class Surroundings(NamedTuple):
    """What a nested graph takes over from the node around it; nothing for the main graph.

    Attributes
    ----------
    inputs : sequence of str
        Names of the node's inputs, captured ones included.
    origins : sequence of (str or None)
        Names of these inputs in the file; None for inputs that are not settled.
    hidden : frozenset of str
        Names that the graph must not define, because they would hide values around it.
    """

    inputs: Sequence[str] = ()
    origins: Sequence[str | None] = ()
    hidden: frozenset[str] = frozenset()


_MAIN = Surroundings()
_OF_THE_FILE = Present(True, None)


class Level:
    """A graph and its original.

    Parameters
    ----------
    graph : _core.Graph
    document : Document
    original : onnx.GraphProto or None
        The graph of the file that this one stands for.
    taken : set of str
        The `ID` of each node of the file that another node already stands for; gets those of this
        graph.
    around : Surroundings, optional
    present : Present, optional
        The outputs that those of the graph are compared with, by default those of the original.

    Attributes
    ----------
    nodes, heads : list
        As `_core.Graph` returns them.
    template : onnx.GraphProto
        The original, or an empty graph.
    claims : dict of int to str
        The `ID` of each node that stands for one of the file, by position. Of several nodes with
        the same `ID`, only the first does.
    """

    def __init__(
        self,
        graph: _core.Graph,
        document: Document,
        original: Any,
        taken: set[str],
        around: Surroundings = _MAIN,
        present: Present = _OF_THE_FILE,
    ) -> None:
        self.nodes = graph.nodes()
        self.heads = graph.heads()
        self.document = document
        self.around = around
        self.present = present
        self._original = original
        self.template: Any = (
            require("onnx", extra="onnx").GraphProto(name="graph") if original is None else original
        )
        self.claims = self._claim(taken)

    def _claim(self, taken: set[str]) -> dict[int, str]:
        claims = {}
        document = self.document
        for position, node in enumerate(self.nodes):
            key = node.attrs.get(ID)
            if key is None or key in taken:
                continue
            known = (
                key in document.inputs or key in document.tensors
                if node.op == VARIABLE
                else key in document.nodes
            )
            if known:
                taken.add(key)
                claims[position] = key
        return claims

    def claim(self, position: int) -> str:
        """Return the `ID` of a node that stands for one of the file; empty for a new node."""
        return self.claims.get(position, "")

    def original(self, position: int) -> OriginalNode | None:
        """Return the operator of the file that a node stands for; None for a new node."""
        return self.document.nodes.get(self.claims.get(position, ""))

    def copied(self) -> Any:
        """Return the nested graph of the file that a new nested graph is a copy of, or None."""
        if self._original is not None:
            return None
        for node in self.nodes:
            place = _WITHIN.sub("", node.attrs.get(ID, ""))
            if place in self.document.graphs:
                return self.document.graphs[place]
        return None

    def titles(self) -> dict[int, str]:
        """Choose the names of operators: as in the file, new ones unique.

        ONNX Runtime identifies operators by name.
        """
        titles = {}
        for position, key in self.claims.items():
            original = self.document.nodes.get(key)
            if original is not None and self.nodes[position].name == original.name:
                titles[position] = str(original.proto.name)
        source = NameSource(set(titles.values()))
        for position, node in enumerate(self.nodes):
            if node.op != VARIABLE and position not in titles:
                titles[position] = source.fresh(node.name) if node.name else ""
        return titles

    def order(self) -> Sequence[int]:
        """Order the nodes: each after its inputs and control dependencies, else as in the file.

        New nodes come directly after the last node that they need. The present order is kept if
        it meets this already. Libraries built with MXNet's own lib_api return nodes in an order
        of their own, therefore that of the file counts.
        """
        places = self._places()
        nodes = self.nodes
        known = [places[position] for position in range(len(nodes)) if position in places]
        if known == sorted(known) and all(
            all(entry[0] < position for entry in node.inputs)
            and all(dep < position for dep in node.control_deps)
            for position, node in enumerate(nodes)
        ):
            return range(len(nodes))
        needs = [[entry[0] for entry in node.inputs] + node.control_deps for node in nodes]
        return stable_order(needs, [places.get(position) for position in range(len(nodes))])

    def _places(self) -> dict[int, int]:
        """Return the numbers of nodes in the file, where inputs and initializers have none."""
        document = self.document
        return {
            position: int(key.rpartition(".")[2])
            for position, key in self.claims.items()
            if key in document.nodes
            or (key in document.tensors and document.tensors[key].kind == "constant")
        }
