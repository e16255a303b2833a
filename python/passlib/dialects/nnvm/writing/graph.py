"""From a graph back to the object of a file: unchanged parts stay the objects that were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from passlib import _core
from passlib.dialects.nnvm.reading.document import (
    PLACE,
    GraphTemplate,
    visible_attributes,
)
from passlib.dialects.nnvm.reading.file import STRUCTURE
from passlib.dialects.nnvm.reading.findings import is_integer
from passlib.dialects.nnvm.reading.structure import BACKWARD_SOURCE, GRAPH_ATTRIBUTE_KEYS
from passlib.dialects.nnvm.reading.types import listed_types
from passlib.dialects.nnvm.schema import TVM_OPERATOR, count_outputs
from passlib.dialects.nnvm.storage import Step
from passlib.dialects.nnvm.writing.entry_lists import Outputs, edited
from passlib.dialects.nnvm.writing.node_objects import (
    changed_object,
    entry_list,
    new_object,
    node_style,
)
from passlib.dialects.nnvm.writing.types import UNKNOWN, new_types
from passlib.graph.attribute_text import parse_position
from passlib.graph.node import VARIABLE
from passlib.graph.ordering import depth_first_order
from passlib.lowering.types import TypeSpec

__all__ = ["EMPTY", "GraphWriter"]

_T = TypeVar("_T")

EMPTY = GraphTemplate({"nodes": [], "arg_nodes": [], "node_row_ptr": [0], "heads": []}, (), ())
"""The template of a graph that was in no file."""


class GraphWriter:
    """Writes one graph; nested graphs have their own writers."""

    def __init__(
        self, graph: _core.Graph, template: GraphTemplate, arrays: Mapping[str, Any]
    ) -> None:
        self.graph = graph
        self.template = template
        self.arrays = arrays

    def value(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the graph object: the original one if nothing changed.

        Parameters
        ----------
        members : mapping of str to value
            Members of the object besides the graph itself, as in the file or as a pass left them.
        """
        root = self.template.root
        before = {key: value for key, value in root.items() if key not in STRUCTURE}
        same = members.keys() == before.keys() and all(
            members[key] is value for key, value in before.items()
        )
        if same and self.template.graph is not None and self.template.graph.equals(self.graph):
            return root
        self.style = node_style(root)
        self.executable = any(node["op"] == TVM_OPERATOR for node in self.template.nodes)
        self.nodes: list[_core.NodeTuple] = self.graph.nodes()
        self.heads: list[tuple[int, int, int]] = self.graph.heads()
        self.origins = self._origins()
        self.order = self._order()
        self.number = [0] * len(self.nodes)
        for i, position in enumerate(self.order):
            self.number[position] = i
        self.heads = [(self.number[p], index, version) for p, index, version in self.heads]
        self.moved = {self.origins[p]: i for i, p in enumerate(self.order)}
        return self._made(members)

    def _made(self, members: Mapping[str, Any]) -> dict[str, Any]:
        root = self.template.root
        made: dict[str, Any] = {
            "nodes": self._node_objects(),
            "arg_nodes": self._arg_nodes(),
            "heads": _kept(entry_list(self.heads, root["heads"], self.style), root["heads"]),
        }
        counts = self._counts()
        if "node_row_ptr" in root:
            rows = [0]
            for position in self.order:
                rows.append(rows[-1] + counts[position])
            made["node_row_ptr"] = _kept(rows, root["node_row_ptr"])
        untouched = made["nodes"] is root["nodes"] and made["heads"] is root["heads"]
        for key, value in members.items():
            made[key] = value
            if key in GRAPH_ATTRIBUTE_KEYS and isinstance(value, dict):
                made[key] = self._edited(key, value, counts, untouched=untouched)
        result = {key: made[key] for key in root if key in made}
        result |= {key: value for key, value in made.items() if key not in root}
        if len(result) == len(root) and all(result[key] is root.get(key) for key in result):
            return root
        return result

    def _origins(self) -> list[int]:
        """Return the place in the file of each node; -1 for a new one."""
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

    def _node_objects(self) -> list[Any]:
        originals = self.template.root["nodes"]
        objects = [self._node_object(position) for position in self.order]
        if len(objects) == len(originals) and all(map(_same, objects, originals)):
            same: list[Any] = originals
            return same
        return objects

    def _node_object(self, position: int) -> Any:
        op, name, attributes, entries, _, dependencies, subgraphs = self.nodes[position]
        number = self.number
        inputs = [(number[p], index, version) for p, index, version in entries]
        waits = [number[p] for p in dependencies]
        place = self.origins[position]
        if op == TVM_OPERATOR:
            attributes = self._with_inputs(place, attributes, len(entries))
        nested = [self._nested(place, i, subgraph) for i, subgraph in enumerate(subgraphs)]
        if op == VARIABLE and self.executable:
            # TVM's reader takes the attributes of any node for those of a tvm_op.
            attributes = visible_attributes(self.template.nodes[place]) if place >= 0 else {}
        if place < 0:
            return new_object(op, name, attributes, inputs, waits, nested, self.style)
        original = self.template.nodes[place]
        changes: dict[str, Any] = {}
        if name != self.template.names[place]:
            changes["name"] = name
        written = entry_list(inputs, original["inputs"], self.style)
        if written != original["inputs"]:
            changes["inputs"] = written
        if waits != original.get("control_deps", []):
            changes["control_deps"] = waits or None
        source = original.get(BACKWARD_SOURCE, -1)
        moved = self.moved.get(source, -1) if is_integer(source) else source
        if moved != source:
            changes[BACKWARD_SOURCE] = moved
        before = original.get("subgraphs", [])
        if len(nested) != len(before) or not all(map(_same, nested, before)):
            changes["subgraphs"] = nested or None
        if not changes and visible_attributes(original) == attributes:
            return original
        return changed_object(original, op, attributes, changes, self.style)

    def _with_inputs(self, place: int, attributes: dict[str, str], count: int) -> dict[str, str]:
        """Update the declared number of inputs of a call whose edges a pass changed."""
        if place >= 0 and len(self.template.nodes[place]["inputs"]) == count:
            return attributes
        return {**attributes, "num_inputs": str(count)}

    def _nested(self, place: int, i: int, graph: _core.Graph) -> dict[str, Any]:
        template = self.template.nested.get((place, i))
        if template is None:
            template = EMPTY
        members = {k: v for k, v in template.root.items() if k not in STRUCTURE}
        return GraphWriter(graph, template, self.arrays).value(members)

    def _arg_nodes(self) -> list[int]:
        before: list[int] = self.template.root["arg_nodes"]
        variables = [i for i, p in enumerate(self.order) if self.nodes[p].op == VARIABLE]
        originals = [i for i, node in enumerate(self.template.nodes) if node["op"] == VARIABLE]
        if before == originals:
            return _kept(variables, before)
        # The file has another order or omits some: it is kept for those that it lists.
        now = {self.origins[self.order[i]]: i for i in variables}
        kept = [now[place] for place in before if place in now]
        known = {now[place] for place in originals if place in now}
        return _kept(kept + [i for i in variables if i not in known], before)

    def _counts(self) -> list[int]:
        """Count the outputs of each node."""
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

    def _edited(
        self, key: str, current: Mapping[str, Any], counts: Sequence[int], *, untouched: bool
    ) -> Mapping[str, Any]:
        """Update lists with one value for each output to the nodes."""
        original: Mapping[str, Any] = self.template.root.get(key, {})
        if untouched and current is original:
            return current
        outputs, types = self._outputs(counts, current)
        return edited(original, current, outputs, types)

    def _outputs(
        self, counts: Sequence[int], attributes: Mapping[str, Any]
    ) -> tuple[Outputs, Callable[[int], TypeSpec]]:
        old_first = [0]
        for count in self.template.outputs:
            old_first.append(old_first[-1] + count)
        first = [0] * len(self.nodes)
        old: list[int] = []
        owner: list[int] = []
        for position in self.order:
            first[position] = len(old)
            place = self.origins[position]
            for index in range(counts[position]):
                known = place >= 0 and index < self.template.outputs[place]
                old.append(old_first[place] + index if known else -1)
                owner.append(position)
        steps: list[Step] = []
        sources: list[int | None] = [None] * len(old)
        users: dict[int, int] = {}
        for position in self.order:
            node = self.nodes[position]
            taken = [first[p] + index for p, index, _ in node.inputs]
            made = range(first[position], first[position] + counts[position])
            steps.append(Step.of(node.op, node.attrs, taken, made))
            for entry in made:
                sources[entry] = taken[0] if taken else None
            for entry in taken:
                users.setdefault(entry, made.start)
        outputs = Outputs(
            old,
            old_first[-1],
            [self.nodes[position].name for position in owner],
            sources,
            users,
            steps,
            [first[self.order[place]] + index for place, index, _ in self.heads],
            rewired=self._rewired(),
        )
        types: dict[int, list[TypeSpec]] = {}

        def type_of(entry: int) -> TypeSpec:
            if not types:
                types.update(self._new_types(listed_types(attributes), old, first, counts))
            return types[owner[entry]][entry - first[owner[entry]]]

        return outputs, type_of

    def _new_types(
        self,
        listed: Sequence[TypeSpec],
        old: Sequence[int],
        first: Sequence[int],
        counts: Sequence[int],
    ) -> dict[int, list[TypeSpec]]:
        """Return the types of all outputs: as listed, and for new nodes from their inputs."""
        types: dict[int, list[TypeSpec]] = {}
        for position in self.order:
            before = old[first[position] : first[position] + counts[position]]
            known = [listed[i] if 0 <= i < len(listed) else UNKNOWN for i in before]
            if self.origins[position] < 0:
                node = self.nodes[position]
                given = [types[p][index] if p in types else UNKNOWN for p, index, _ in node.inputs]
                known = new_types(
                    node.op, node.name, node.attrs, given, counts[position], self.arrays
                )
            types[position] = known
        return types

    def _rewired(self) -> bool:
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


def _same(left: Any, right: Any) -> bool:
    return left is right


def _kept(value: list[_T], original: list[_T]) -> list[_T]:
    """Return the original if it has this value, since it keeps its text."""
    return original if value == original else value
