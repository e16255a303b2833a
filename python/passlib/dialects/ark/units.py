"""From single ops back to the nodes of a model file or the tasks of a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from passlib.dialects.ark.items import Item
from passlib.dialects.ark.operators import ID
from passlib.dialects.ark.ordering import stable_order
from passlib.dialects.ark.plan_units import arrange_plan
from passlib.dialects.ark.reading import Template
from passlib.errors import GraphError
from passlib.graph.node import Node

__all__ = ["arrange"]


def arrange(template: Template, items: Sequence[Item], values: Sequence[dict[str, Any]]) -> Any:
    """Make the file's root object.

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
    groups, order, needs = _grouped(template, items)
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


def _original_unit(items: Sequence[Item], members: list[int]) -> int | None:
    original = items[members[0]].original
    return None if original is None else original.place.unit


def _originals(items: Sequence[Item], groups: list[list[int]]) -> list[int | None]:
    """Give the node of the file that each group is; of several parts of one, the first is it."""
    taken: set[int] = set()
    originals: list[int | None] = []
    for members in groups:
        unit = _original_unit(items, members)
        originals.append(None if unit is None or unit in taken else unit)
        taken.add(-1 if unit is None else unit)
    return originals


def _grouped(
    template: Template, items: Sequence[Item]
) -> tuple[list[list[int]], list[int], list[set[int]]]:
    """Put the ops of a node together again, as far as that makes no circle."""
    apart: set[int] = set()
    while True:
        groups: list[list[int]] = []
        group_of: dict[int, int] = {}
        by_unit: dict[int, int] = {}
        for number, item in enumerate(items):
            unit = None if item.original is None else item.original.place.unit
            if unit is not None and unit in by_unit and unit not in apart:
                group = by_unit[unit]
            else:
                group = len(groups)
                groups.append([])
                if unit is not None:
                    by_unit[unit] = group
            groups[group].append(number)
            group_of[id(item.resolved.node)] = group
        for members in groups:
            members.sort(key=lambda i: items[i].position)
        needs = _needs(items, groups, group_of)
        priority = _priorities(items, groups, needs)
        try:
            order = stable_order(len(groups), needs, _namer(items, groups), priority)
        except GraphError:
            shared = {_original_unit(items, members) for members in groups if len(members) > 1}
            if not shared:
                raise
            apart |= {unit for unit in shared if unit is not None}
            continue
        return groups, order, needs


def _namer(items: Sequence[Item], groups: list[list[int]]) -> Callable[[int], str]:
    return lambda group: repr(items[groups[group][0]].resolved.node.name)


def _needs(
    items: Sequence[Item], groups: list[list[int]], group_of: dict[int, int]
) -> list[set[int]]:
    makers = {
        tensor.id: group
        for group, members in enumerate(groups)
        for i in members
        for tensor in items[i].resolved.results
    }
    needs: list[set[int]] = []
    for group, members in enumerate(groups):
        wanted: set[int] = set()
        for i in members:
            one = items[i].resolved
            wanted.update(
                makers[tensor.id] for tensor in (*one.reads, *one.writes) if tensor.id in makers
            )
            wanted |= _through_implied(one.node, group_of)
        wanted.discard(group)
        needs.append(wanted)
    return needs


def _through_implied(node: Node, group_of: dict[int, int]) -> set[int]:
    """Find the groups that a node uses, through nodes that are not in the file."""
    found: set[int] = set()
    seen: set[int] = set()
    pending = [*(entry.node for entry in node.inputs), *node.control_deps]
    while pending:
        source = pending.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        if id(source) in group_of:
            found.add(group_of[id(source)])
        else:
            pending += [entry.node for entry in source.inputs]
    return found


def _priorities(
    items: Sequence[Item], groups: list[list[int]], needs: list[set[int]]
) -> list[tuple[int, int, int]]:
    """Let old nodes stay in their order; new ones follow what they need, or precede their user."""
    priority: list[tuple[int, int, int]] = []
    for group, members in enumerate(groups):
        unit = _original_unit(items, members)
        if unit is not None:
            priority.append((unit, 0, group))
            continue
        key = items[members[0]].resolved.node.attrs.get(ID, "").split(".")[0]
        after = max((priority[n][0] for n in needs[group] if n < group), default=-1)
        priority.append((int(key) if key.isdecimal() else after, 1, group))
    for group, wanted in reversed(list(enumerate(needs))):
        for need in wanted:
            if not needs[need] and _original_unit(items, groups[need]) is None:
                before = (priority[group][0], priority[group][1], -1)
                fresh = priority[need][0] == -1
                priority[need] = before if fresh else min(priority[need], before)
    return priority


def _ids(
    template: Template,
    originals: list[int | None],
    order: list[int],
    empty: list[int],
    *,
    renumber: bool,
) -> dict[int, int]:
    """Give Ids: positions if the file has these, else old nodes keep theirs."""
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
    """Give the producers of a node: the old list, less what is gone, and what is new."""
    if original is None:
        return sorted(needs)
    before = template.needs[original]
    listed: list[int] = []
    for producer in template.document.units[original]["ProducerNodeIds"]:
        unit = template.positions[producer]
        bridged = [unit]
        if unit not in number_of and unit in template.control[original]:
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
    """Give what a removed node waited for, which those that waited for it now wait for."""
    found: list[int] = []
    seen, pending = {unit}, [unit]
    while pending:
        for producer in template.document.units[pending.pop()]["ProducerNodeIds"]:
            further = template.positions[producer]
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
        group = number_of.get(template.positions.get(consumer, -1))
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
    single = template.document.variant == "v3"
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
