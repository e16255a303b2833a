"""Checks of a model as a whole: producers, consumers, order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.errors import GraphError
from passlib.families.ark.operators import FileOp
from passlib.families.ark.ordering import ordered
from passlib.families.ark.validation.hazards import Access, find_hazards
from passlib.families.ark.validation.report import Report


def check_graph(report: Report, units: Sequence[dict[str, Any]], ops: Sequence[FileOp]) -> None:
    """Check the edges between nodes.

    Parameters
    ----------
    report : Report
    units : sequence of dict
        The nodes, structurally sound.
    ops : sequence of FileOp
        All their ops.
    """
    positions: dict[int, int] = {}
    for number, unit in enumerate(units):
        if positions.setdefault(unit["Id"], number) != number:
            report.error(f"Nodes[{number}].Id", f"two nodes have the Id {unit['Id']}")
    _lists(report, units, positions)
    needs = [{positions[p] for p in unit["ProducerNodeIds"] if p in positions} for unit in units]
    _tensors(report, units, ops, needs)
    for number, wanted in enumerate(needs):
        late = [units[need]["Id"] for need in wanted if need > number]
        if late:
            report.warning(
                f"Nodes[{number}]", f"precedes its producers {', '.join(map(str, late))}"
            )
    try:
        order = ordered(needs, lambda n: f"Nodes[{n}]")
    except GraphError as error:
        report.error("Nodes", str(error))
        return
    _hazards(report, ops, needs, order)


def _lists(report: Report, units: Sequence[dict[str, Any]], positions: dict[int, int]) -> None:
    edges = {
        key: [set(unit[key]) for unit in units] for key in ("ProducerNodeIds", "ConsumerNodeIds")
    }
    for key, other, role in (
        ("ProducerNodeIds", "ConsumerNodeIds", "consumer"),
        ("ConsumerNodeIds", "ProducerNodeIds", "producer"),
    ):
        for number, unit in enumerate(units):
            seen: set[int] = set()
            for i, item in enumerate(unit[key]):
                place = f"Nodes[{number}].{key}[{i}]"
                if item not in positions:
                    report.error(place, f"there is no node {item}")
                elif item == unit["Id"]:
                    report.error(place, "a node has no edge to itself")
                elif item in seen:
                    report.error(place, f"node {item} is listed twice")
                elif unit["Id"] not in edges[other][positions[item]]:
                    report.error(
                        place, f"node {item} does not list node {unit['Id']} as its {role}"
                    )
                seen.add(item)


def _tensors(
    report: Report,
    units: Sequence[dict[str, Any]],
    ops: Sequence[FileOp],
    needs: list[set[int]],
) -> None:
    """Compare the listed producers with those of the tensors.

    Files without virtual ops may list more, because of views that were removed.
    """
    full = any(op.virtual for op in ops)
    makers = {tensor.id: op.place.unit for op in ops for tensor in op.results}
    shown: list[set[int]] = [set() for _ in units]
    for op in ops:
        shown[op.place.unit].update(
            makers[tensor.id] for tensor in (*op.reads, *op.writes) if tensor.id in makers
        )
    for number, sources in enumerate(shown):
        sources.discard(number)
        place = f"Nodes[{number}].ProducerNodeIds"
        missing = sorted(units[unit]["Id"] for unit in sources - needs[number])
        if missing:
            report.error(place, f"does not list nodes whose tensors it uses: {missing}")
        surplus = sorted(units[unit]["Id"] for unit in needs[number] - sources - {number})
        if surplus and full:
            report.error(place, f"lists nodes whose tensors it does not use: {surplus}")


def _hazards(
    report: Report, ops: Sequence[FileOp], needs: list[set[int]], order: list[int]
) -> None:
    rank = {unit: position for position, unit in enumerate(order)}
    in_order = sorted(ops, key=lambda op: (rank[op.place.unit], op.place.position))
    last: dict[int, int] = {}
    accesses = []
    for position, op in enumerate(in_order):
        unit = op.place.unit
        before = [last[unit]] if unit in last else [last[n] for n in needs[unit] if n in last]
        reads = () if op.virtual else op.reads
        accesses.append(Access(reads, op.writes, op.results, before))
        last[unit] = position
    hazards, unchecked = find_hazards(accesses)
    for hazard in hazards:
        first, second = in_order[hazard.first].place.path, in_order[hazard.second].place.path
        if hazard.stale:
            report.warning(
                second,
                f"reads memory of buffer {hazard.buffer} that {first} has already overwritten",
            )
        else:
            report.warning(
                second,
                f"uses the same memory of buffer {hazard.buffer} as {first}, in no defined order",
            )
    if unchecked is not None:
        report.warning(
            in_order[unchecked].place.path,
            "memory is used in too many ways to compare: from here on, accesses without a defined "
            "order are not reported",
        )
