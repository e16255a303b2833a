"""Buffers of TVM's graph executor: entries that share one must not be live at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from passlib.families.nnvm.schema import TVM_OPERATOR
from passlib.graph.node import VARIABLE

_FOREVER = 1 << 62


class Step(NamedTuple):
    """The entries that a node reads and writes, numbered through the graph."""

    is_variable: bool
    is_alias: bool
    """Whether its output is an alias of its input (the function ``__nop``)."""
    inputs: Sequence[int]
    outputs: range

    @classmethod
    def of(
        cls, op: str, attributes: Mapping[str, str], inputs: Sequence[int], outputs: range
    ) -> Step:
        """Make the step of a node."""
        alias = op == TVM_OPERATOR and attributes.get("func_name") == "__nop"
        return cls(op == VARIABLE, alias, inputs, outputs)


class _Life(NamedTuple):
    """The time in which an entry is in use; a node runs from an even time to the next odd one."""

    start: int
    end: int
    entry: int


def _lives(steps: Sequence[Step], heads: Sequence[int]) -> list[_Life]:
    """Compute when each entry is in use, without aliases.

    Variables live from beginning to end, since they are set from outside.
    """
    root: dict[int, int] = {}
    start: dict[int, int] = {}
    end: dict[int, int] = {}
    for time, step in enumerate(steps):
        for entry in step.inputs:
            used = root.get(entry, entry)
            end[used] = max(end.get(used, 0), 2 * time)
        for entry in step.outputs:
            if step.is_alias and step.inputs:
                root[entry] = root.get(step.inputs[0], step.inputs[0])
                continue
            start[entry] = -1 if step.is_variable else 2 * time
            end[entry] = _FOREVER if step.is_variable else 2 * time + 1
    for entry in heads:
        end[root.get(entry, entry)] = _FOREVER
    return sorted(_Life(begin, end[entry], entry) for entry, begin in start.items())


def conflicts(
    steps: Sequence[Step], heads: Sequence[int], storage: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of a live entry, and one that is written to the same buffer.

    There is a step for each node, in order of execution; ``heads`` are the outputs of the graph,
    ``storage`` has the buffer of each entry; negative numbers stand for none.
    """
    last: dict[int, _Life] = {}
    for life in _lives(steps, heads):
        buffer = storage[life.entry]
        if buffer < 0:
            continue
        before = last.get(buffer)
        if before is not None and life.start < before.end:
            yield before.entry, life.entry
        if before is None or life.end > before.end:
            last[buffer] = life


def separated(steps: Sequence[Step], heads: Sequence[int], storage: Sequence[int]) -> list[int]:
    """Return buffers in which entries that would be written into one in use get new ones.

    Aliases get the buffer of their entry.
    """
    result = list(storage)
    fresh = max(result, default=-1) + 1
    for _, entry in conflicts(steps, heads, storage):
        result[entry] = fresh
        fresh += 1
    for step in steps:
        if step.is_alias and step.inputs:
            for entry in step.outputs:
                result[entry] = result[step.inputs[0]]
    return result


def overlaps(
    nodes: Sequence[Mapping[str, Any]],
    heads: Sequence[Sequence[int]],
    rows: Sequence[int],
    attributes: Mapping[str, Any],
) -> Iterator[str]:
    """Describe the conflicts between entries of a parsed, examined graph."""
    if "storage_id" not in attributes:
        return
    steps = [
        Step.of(
            node["op"],
            node.get("attrs") or node.get("attr") or {},
            [rows[entry[0]] + entry[1] for entry in node["inputs"]],
            range(rows[place], rows[place + 1]),
        )
        for place, node in enumerate(nodes)
    ]
    outputs = [rows[entry[0]] + entry[1] for entry in heads]
    storage = attributes["storage_id"][1]
    for step in steps:
        if step.is_alias and step.inputs:
            source = step.inputs[0]
            for entry in step.outputs:
                if storage[entry] != storage[source]:
                    yield (
                        f"entry {entry} is an alias of entry {source}, but is in buffer "
                        f"{storage[entry]}, not in {storage[source]}"
                    )
    for before, after in conflicts(steps, outputs, storage):
        yield f"entry {after} is written to buffer {storage[after]} while it holds entry {before}"
