"""Names for the values of an ONNX graph that a pass may have changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from passlib.dialects.onnx.keys import ABSENT, OUTER
from passlib.dialects.onnx.writing.level import Level
from passlib.errors import GraphError
from passlib.graph.attribute_text import parse_position
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

__all__ = ["Names", "choose_names"]

Key = tuple[int, int]
"""A value: position of its node, and output."""


@dataclass
class Names:
    """The names of the values of one graph.

    Attributes
    ----------
    of : dict of (int, int) to str
        By node and output.
    outputs : list of str
        Of the graph, in order.
    copies : list of (str, str)
        Pairs of a value and of the graph output that must be a copy of it.
    """

    of: dict[Key, str] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    copies: list[tuple[str, str]] = field(default_factory=list)


def choose_names(level: Level, source: NameSource) -> Names:
    """Name the values of a graph: outputs of the graph first, then as in the file, then anew.

    Raises
    ------
    GraphError
        An input has the name of an output that another node computes.
    """
    return _Namer(level, source).choose()


class _Namer:
    def __init__(self, level: Level, source: NameSource) -> None:
        self._level = level
        self._nodes = level.nodes
        self._heads = level.heads
        self._source = source
        self._names = Names()
        self._captured: set[str] = set()

    def choose(self) -> Names:
        self._name_captured()
        wanted = self._wanted()
        first: dict[str, Key] = {}
        for number, (head, output, _) in enumerate(self._heads):
            wish = wanted[number]
            if wish is not None and first.setdefault(wish, (head, output)) != (head, output):
                wanted[number] = None  # the file has one value there, now there are two
        hidden = self._level.around.hidden | self._captured
        taken = self._name_variables(first, hidden)
        for name, key in first.items():
            if key not in self._names.of:
                self._names.of[key] = name
                taken.add(name)
        self._name_operators(taken | first.keys() | hidden)
        self._name_heads(wanted)
        return self._names

    def _name_captured(self) -> None:
        """Name the variables of a nested graph that stand for values from outside."""
        around = self._level.around.inputs
        if not around:
            return
        for position, node in enumerate(self._nodes):
            outer = node.attrs.get(OUTER)
            if node.op == VARIABLE and node.name != ABSENT and outer is not None:
                number = parse_position(outer)
                if number is None or number >= len(around):
                    raise GraphError(
                        f"variable {node.name!r} of a nested graph stands for input {outer} of the "
                        f"node around it, which has {len(around)} inputs"
                    )
                self._names.of[position, 0] = around[number]
                self._captured.add(around[number])

    def _wanted(self) -> list[str | None]:
        """Return the preferred name of each output of the graph; None if any will do."""
        wanted = self._by_place_or_value()
        if not self._level.around.inputs:
            return wanted
        # The names of a nested graph's outputs do not matter outside of it.
        hidden, captured, of = self._level.around.hidden, self._captured, self._names.of
        return [
            None if wish in hidden or (wish in captured and of.get(head[:2]) != wish) else wish
            for head, wish in zip(self._heads, wanted, strict=True)
        ]

    def _by_place_or_value(self) -> list[str | None]:
        present = self._level.present
        if present.outputs is None:
            left = [str(value.name) for value in self._level.template.output]
        else:
            left = [output.name for output in present.outputs]
        if len(self._heads) == len(left) and present.by_place:
            return list(left)
        # Outputs were added or removed: the remaining ones are recognised by their values.
        wanted: list[str | None] = []
        for node, output, _ in self._heads:
            name = self._name_before(node, output)
            if name in left:
                left.remove(name)
                wanted.append(name)
            else:
                wanted.append(None)
        return wanted

    def _name_before(self, position: int, output: int) -> str:
        """Return the name that a value has as an output at present, or in the file."""
        if self._level.present.outputs is None:
            return self._name_in_file(position, output)
        key, node = self._level.claim(position), self._nodes[position].name
        for other in self._level.present.outputs:
            same = other.key == key if key else not other.key and other.node == node
            if same and other.output == output:
                return other.name
        return ""

    def _name_in_file(self, position: int, output: int) -> str:
        """Return the name of a value in the file; empty for a new one."""
        if self._nodes[position].op == VARIABLE:
            return self._nodes[position].name
        original = self._level.original(position)
        if original is None or output >= len(original.proto.output):
            return ""
        return str(original.proto.output[output])

    def _name_variables(self, first: dict[str, Key], hidden: frozenset[str]) -> set[str]:
        """Name the other variables; return their names."""
        of, source = self._names.of, self._source
        taken: set[str] = set()
        for position, node in enumerate(self._nodes):
            if node.op != VARIABLE:
                continue
            key, name = (position, 0), node.name
            if key in of:
                continue
            if name == ABSENT:
                of[key] = ""
            elif name in hidden or first.get(name, key) != key:
                if self._level.claim(position).startswith("input."):
                    raise GraphError(
                        f"input {name!r} has the name of an output that another node computes; "
                        "rename the input"
                    )
                of[key] = source.fresh(name)
                taken.add(of[key])
            else:
                of[key] = name
                source.used.add(name)
                taken.add(name)
        return taken

    def _name_operators(self, reserved: set[str]) -> None:
        of = self._names.of
        used = {(entry[0], entry[1]) for node in self._nodes for entry in node.inputs}
        used.update((head, output) for head, output, _ in self._heads)
        highest: dict[int, int] = {}
        for position, output in used:
            highest[position] = max(highest.get(position, -1), output)
        for position, node in enumerate(self._nodes):
            if node.op == VARIABLE:
                continue
            original = self._level.original(position)
            outputs = () if original is None else original.proto.output
            same = original is not None and original.proto.op_type == node.op
            stated = len(outputs) if same else max(node.num_outputs, 1)
            count = max(stated, highest.get(position, -1) + 1)
            for index in range(count):
                key = (position, index)
                if key in of:
                    continue
                old = str(outputs[index]) if index < len(outputs) else None
                if old == "" and key not in used:
                    of[key] = ""
                elif old and old not in reserved:
                    of[key] = old
                    reserved.add(old)
                else:
                    wish = node.name if count == 1 else f"{node.name}_{index}"
                    of[key] = self._source.fresh(wish or node.op)

    def _name_heads(self, wanted: list[str | None]) -> None:
        names = self._names
        for (node, output, _), wish in zip(self._heads, wanted, strict=True):
            value = names.of[node, output]
            name = wish or value
            # A nested graph can return a value from outside only as a copy.
            if wish is None and (value in names.outputs or value in self._captured):
                name = self._source.fresh(value)
            names.outputs.append(name)
            if name != value:
                names.copies.append((value, name))
