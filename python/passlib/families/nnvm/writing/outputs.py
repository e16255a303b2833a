"""The outputs of all nodes of a written graph, numbered through it, and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.families.nnvm.storage import Step
from passlib.families.nnvm.writing.arrangement import Arrangement
from passlib.families.nnvm.writing.types import UNKNOWN, new_types
from passlib.lowering.types import TypeSpec


@dataclass(frozen=True)
class Outputs:
    """All outputs of all nodes of the written graph, numbered through it.

    Attributes
    ----------
    old : sequence of int
        Number of each in the file, -1 for a new one.
    old_count : int
        Number of outputs in the file.
    names : sequence of str
        Name of the node of each output.
    sources : sequence of (int or None)
        The first input of the node of each output; None for a variable.
    users : mapping of int to int
        For each used output, the first output of its first user.
    steps : sequence of Step
        The nodes, in order.
    heads : sequence of int
    rewired : bool
        Whether nodes, edges or their order differ from the file.
    """

    old: Sequence[int]
    old_count: int
    names: Sequence[str]
    sources: Sequence[int | None]
    users: Mapping[int, int]
    steps: Sequence[Step]
    heads: Sequence[int]
    rewired: bool

    @property
    def same(self) -> bool:
        """Whether each output has the same number as in the file."""
        return len(self.old) == self.old_count and all(
            before == now for now, before in enumerate(self.old)
        )


def number_outputs(arrangement: Arrangement) -> Outputs:
    """Assign numbers to the outputs of all nodes, in the order of writing."""
    old_first = [0]
    for count in arrangement.template.outputs:
        old_first.append(old_first[-1] + count)
    nodes, counts, order = arrangement.nodes, arrangement.counts, arrangement.order
    first = _first_outputs(arrangement)
    old: list[int] = []
    names: list[str] = []
    for position in order:
        place = arrangement.origins[position]
        for index in range(counts[position]):
            known = place >= 0 and index < arrangement.template.outputs[place]
            old.append(old_first[place] + index if known else -1)
            names.append(nodes[position].name)
    steps: list[Step] = []
    sources: list[int | None] = [None] * len(old)
    users: dict[int, int] = {}
    for position in order:
        node = nodes[position]
        taken = [first[p] + index for p, index, _ in node.inputs]
        made = range(first[position], first[position] + counts[position])
        steps.append(Step.of(node.op, node.attrs, taken, made))
        for entry in made:
            sources[entry] = taken[0] if taken else None
        for entry in taken:
            users.setdefault(entry, made.start)
    heads = [first[order[place]] + index for place, index, _ in arrangement.heads]
    return Outputs(
        old, old_first[-1], names, sources, users, steps, heads, rewired=arrangement.rewired
    )


def _first_outputs(arrangement: Arrangement) -> list[int]:
    """Return the number of the first output of each node, by position."""
    first = [0] * len(arrangement.nodes)
    total = 0
    for position in arrangement.order:
        first[position] = total
        total += arrangement.counts[position]
    return first


def types_by_output(
    arrangement: Arrangement,
    outputs: Outputs,
    listed: Sequence[TypeSpec],
    arrays: Mapping[str, Any],
) -> list[TypeSpec]:
    """Return the types of all outputs: as listed, and for new nodes from their inputs.

    Parameters
    ----------
    arrangement : Arrangement
    outputs : Outputs
        See `number_outputs`.
    listed : sequence of TypeSpec
        Types of the outputs of the file.
    arrays : mapping of str to array
        Parameters by name.
    """
    first = _first_outputs(arrangement)
    types = [listed[i] if 0 <= i < len(listed) else UNKNOWN for i in outputs.old]
    for position in arrangement.order:
        if arrangement.origins[position] < 0:
            node, count = arrangement.nodes[position], arrangement.counts[position]
            given = [types[first[p] + index] for p, index, _ in node.inputs]
            found = new_types(node.op, node.name, node.attrs, given, count, arrays)
            types[first[position] : first[position] + count] = found
    return types
