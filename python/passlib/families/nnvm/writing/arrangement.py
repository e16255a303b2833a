"""The nodes of a written graph: their origins in the file and their order."""

from __future__ import annotations

import passlib._core as _core
from passlib.families.nnvm.reading.template import PLACE, GraphTemplate, visible_attributes
from passlib.families.nnvm.schema import count_outputs
from passlib.graph.attribute_text import parse_position
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import depth_first_order


class Arrangement:
    """The nodes of a graph, related to those of the file, in the order of writing.

    Attributes
    ----------
    template : GraphTemplate
        The graph object of the file.
    nodes : list of NodeTuple
        In the order of the graph; a position is an index of this list.
    origins : list of int
        Place in the file of each node; -1 for a new one.
    order : list of int
        Positions in the order of writing.
    number : list of int
        Place of each node in the written file.
    heads : list of (int, int, int)
        Outputs of the graph, with places in the written file.
    counts : list of int
        Number of outputs of each node.
    """

    def __init__(self, graph: _core.Graph, template: GraphTemplate) -> None:
        self.template = template
        self.nodes: list[_core.NodeTuple] = graph.nodes()
        self.origins = self._origins()
        self.order = self._order()
        self.number = [0] * len(self.nodes)
        for i, position in enumerate(self.order):
            self.number[position] = i
        self.heads = [(self.number[p], index, version) for p, index, version in graph.heads()]
        self.counts = self._counts()

    @property
    def rewired(self) -> bool:
        """Whether nodes or edges differ from the file."""
        originals = self.template.nodes
        if [self.origins[p] for p in self.order] != list(range(len(originals))):
            return True
        for place, position in enumerate(self.order):
            inputs = [(self.number[p], index) for p, index, _ in self.nodes[position].inputs]
            if inputs != [(entry[0], entry[1]) for entry in originals[place]["inputs"]]:
                return True
        before = [(entry[0], entry[1]) for entry in self.template.root["heads"]]
        return before != [(place, index) for place, index, _ in self.heads]

    def _origins(self) -> list[int]:
        originals = self.template.nodes
        claimed: set[int] = set()
        origins = []
        for node in self.nodes:
            place = parse_position(node.attrs.pop(PLACE, ""))
            if (
                place is None
                or place >= len(originals)
                or place in claimed
                or originals[place]["op"] != node.op
            ):
                place = -1
            else:
                claimed.add(place)
            origins.append(place)
        return origins

    def _order(self) -> list[int]:
        """Order nodes as in the file, and new ones directly before their first user.

        The order that the pass left is ignored, since libraries built with MXNet's own header
        change it. A file with uses before definitions keeps its order unless it has new nodes.
        """
        count, origins = len(self.nodes), self.origins
        wish = sorted(range(count), key=lambda p: origins[p] if origins[p] >= 0 else count + p)
        if self._is_free_order() and -1 not in origins:
            return wish
        needs = [[entry[0] for entry in node.inputs] + node.control_deps for node in self.nodes]
        return depth_first_order(needs, wish)

    def _is_free_order(self) -> bool:
        return any(
            max((entry[0] for entry in node["inputs"]), default=-1) >= place
            or max(node.get("control_deps", ()), default=-1) >= place
            for place, node in enumerate(self.template.nodes)
        )

    def _counts(self) -> list[int]:
        used = [0] * len(self.nodes)
        for node in self.nodes:
            for position, index, _ in node.inputs:
                used[position] = max(used[position], index + 1)
        for place, index, _ in self.heads:
            position = self.order[place]
            used[position] = max(used[position], index + 1)
        counts = []
        for position, node in enumerate(self.nodes):
            op, attributes, place = node.op, node.attrs, self.origins[position]
            if place >= 0:
                count = self.template.outputs[place]
                before = visible_attributes(self.template.nodes[place])
                declared = count_outputs(op, attributes) if before != attributes else 0
                if declared and declared != count_outputs(op, before):
                    count = declared
            else:
                known = 1 if op == VARIABLE else count_outputs(op, attributes)
                count = known or node.num_outputs or 1
            counts.append(max(count, used[position]))
        return counts
