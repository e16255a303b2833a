"""From single ops to the nodes of a model file, or the tasks of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.families.ark.reading.template import Template
from passlib.families.ark.writing.grouping import group_items, original_unit
from passlib.families.ark.writing.items import Item
from passlib.families.ark.writing.plan_units import arrange_plan


def arrange(template: Template, items: Sequence[Item], values: Sequence[dict[str, Any]]) -> Any:
    """Return the file's root object.

    Parameters
    ----------
    template : Template
    items : sequence of Item
        Each after those that it uses.
    values : sequence of dict
        Their JSON objects.

    Raises
    ------
    GraphError
        Ops need each other in a circle.
    """
    document = template.document
    if document.plan:
        return arrange_plan(template, items, values)
    groups, order, needs = group_items(items)
    units = document.units
    originals = _originals(items, groups)
    kept = {unit for unit in originals if unit is not None}
    empty = [number for number, unit in enumerate(units) if not unit.get("Ops", True)]
    unchanged_order = all(unit is not None for unit in originals) and len(kept) + len(empty) == len(
        units
    )
    if unchanged_order:
        order = sorted(order, key=lambda group: originals[group] or 0)
    new_ids = _ids(template, originals, order, empty, renumber=not unchanged_order)
    number_of = {original: g for g, original in enumerate(originals) if original is not None}
    producers = [
        _producers(template, originals[g], needs[g], number_of) for g in range(len(groups))
    ]
    users: list[list[int]] = [[] for _ in groups]
    for group in order:
        for producer in producers[group]:
            users[producer].append(group)
    made = {}
    for group in order:
        original = originals[group]
        old = None if original is None else units[original]
        consumers = _consumers(template, old, users[group], number_of)
        made[group] = _unit(
            template,
            old,
            new_ids[group],
            [new_ids[p] for p in producers[group]],
            [new_ids[c] for c in consumers],
            [values[i] for i in groups[group]],
        )
    listed = [made[group] for group in order]
    for number in empty:
        listed.insert(min(number, len(listed)), units[number])
    if len(listed) == len(units) and all(a is b for a, b in zip(listed, units, strict=True)):
        return document.root
    return {key: listed if key == "Nodes" else item for key, item in document.root.items()}


def _originals(items: Sequence[Item], groups: list[list[int]]) -> list[int | None]:
    """Return the original node of each group; only the first part of a split node has one."""
    taken: set[int] = set()
    originals: list[int | None] = []
    for members in groups:
        unit = original_unit(items, members)
        originals.append(None if unit is None or unit in taken else unit)
        taken.add(-1 if unit is None else unit)
    return originals


def _ids(
    template: Template,
    originals: list[int | None],
    order: list[int],
    empty: list[int],
    *,
    renumber: bool,
) -> dict[int, int]:
    """Return the Id of each group: its position if all Ids were positions, else the old Id."""
    units = template.document.units
    if all(unit["Id"] == number for number, unit in enumerate(units)) and not empty and renumber:
        return {group: position for position, group in enumerate(order)}
    free = max((unit["Id"] for unit in units), default=-1) + 1
    ids = {}
    for group in order:
        original = originals[group]
        if original is not None:
            ids[group] = units[original]["Id"]
        else:
            ids[group] = free
            free += 1
    return ids


def _producers(
    template: Template,
    original: int | None,
    needs: set[int],
    number_of: dict[int, int],
) -> list[int]:
    """Return the producers of a node: the old list without removed nodes, then the new ones."""
    if original is None:
        return sorted(needs)
    before = template.parts.needs[original]
    listed: list[int] = []
    for producer in template.document.units[original]["ProducerNodeIds"]:
        unit = template.parts.positions[producer]
        bridged = [unit]
        if unit not in number_of and unit in template.parts.control[original]:
            bridged = _bridge(template, unit, number_of)
        for source in bridged:
            group = number_of.get(source)
            if group is None or group in listed:
                continue
            if group in needs or source not in before:
                listed.append(group)
    old = {number_of[unit] for unit in before if unit in number_of}
    return listed + sorted(needs - old - set(listed))


def _bridge(template: Template, unit: int, present: dict[int, int]) -> list[int]:
    """Return a removed node's dependencies, which its dependents inherit."""
    found: list[int] = []
    seen, pending = {unit}, [unit]
    while pending:
        for producer in template.document.units[pending.pop()]["ProducerNodeIds"]:
            further = template.parts.positions[producer]
            if further in seen:
                continue
            seen.add(further)
            (found if further in present else pending).append(further)
    return found


def _consumers(
    template: Template,
    old: dict[str, Any] | None,
    users: list[int],
    number_of: dict[int, int],
) -> list[int]:
    if old is None:
        return users
    known = set(users)
    listed: dict[int, None] = {}
    for consumer in old["ConsumerNodeIds"]:
        group = number_of.get(template.parts.positions.get(consumer, -1))
        if group in known:
            listed[group] = None
    return [*listed, *(user for user in users if user not in listed)]


def _unit(
    template: Template,
    old: dict[str, Any] | None,
    number: int,
    producers: list[int],
    consumers: list[int],
    ops: list[dict[str, Any]],
) -> dict[str, Any]:
    single = template.document.variant.single_op
    if old is None:
        body = {"Op": ops[0]} if single and len(ops) == 1 else {"Ops": ops}
        return {"Id": number, "ProducerNodeIds": producers, "ConsumerNodeIds": consumers, **body}
    members: dict[str, Any] = {
        "Id": number,
        "ProducerNodeIds": producers,
        "ConsumerNodeIds": consumers,
    }
    if "Ops" in old:
        same = len(ops) == len(old["Ops"]) and all(
            a is b for a, b in zip(ops, old["Ops"], strict=True)
        )
        members["Ops"] = old["Ops"] if same else ops
    else:
        members["Op"] = ops[0]
    result = {key: members.get(key, item) for key, item in old.items()}
    changed = False
    for key, item in old.items():
        new = result[key]
        if new is item or (key in ("Id", "ProducerNodeIds", "ConsumerNodeIds") and new == item):
            result[key] = item
        else:
            changed = True
    return result if changed else old
