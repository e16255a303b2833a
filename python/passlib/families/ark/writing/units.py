"""From single ops to the nodes of a model file, or the tasks of a plan."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from passlib._core import JsonArray, JsonObject
from passlib.families.ark.document import Document, circle_error, compact_json
from passlib.families.ark.operators import ID
from passlib.families.ark.reading import Template
from passlib.families.ark.writing.values import Item, written_sources
from passlib.graph.attributes import parse_position
from passlib.graph.ordering import stable_order


def group_items(items: Sequence[Item]) -> tuple[list[list[int]], list[int], list[set[int]]]:
    """Group the ops of each node, unless that makes a circle.

    Raises `GraphError` if ops need each other in a circle.

    Returns
    -------
    groups : list of list of int
        The items of each node.
    order : list of int
        The groups, each after those it needs.
    needs : list of set of int
        The groups that each group needs.
    """
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
        order = stable_order(needs, priority)
        if len(order) == len(groups):
            return groups, order, needs
        shared = {original_unit(items, members) for members in groups if len(members) > 1}
        if not shared:
            raise circle_error(needs, _namer(items, groups))
        apart |= {unit for unit in shared if unit is not None}


def original_unit(items: Sequence[Item], members: list[int]) -> int | None:
    """Return the node of the file that a group of items comes from."""
    original = items[members[0]].original
    return None if original is None else original.place.unit


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
            wanted.update(written_sources(one.node, group_of))
        wanted.discard(group)
        needs.append(wanted)
    return needs


def _priorities(
    items: Sequence[Item], groups: list[list[int]], needs: list[set[int]]
) -> list[tuple[int, int, int]]:
    """Rank groups: old nodes keep their order, new ones are next to nodes they need or serve."""
    priority: list[tuple[int, int, int]] = []
    for group, members in enumerate(groups):
        unit = original_unit(items, members)
        if unit is not None:
            priority.append((unit, 0, group))
            continue
        key = parse_position(items[members[0]].resolved.node.attrs.get(ID, "").split(".")[0])
        after = max((priority[n][0] for n in needs[group] if n < group), default=-1)
        priority.append((after if key is None else key, 1, group))
    for group, wanted in reversed(list(enumerate(needs))):
        for need in wanted:
            if not needs[need] and original_unit(items, groups[need]) is None:
                before = (priority[group][0], priority[group][1], -1)
                fresh = priority[need][0] == -1
                priority[need] = before if fresh else min(priority[need], before)
    return priority


def arrange_plan(
    template: Template, items: Sequence[Item], values: Sequence[dict[str, Any]]
) -> Any:
    """Return the root object of a plan, without empty tasks and their places on processors."""
    document = template.document
    by_unit: defaultdict[int, list[int]] = defaultdict(list)
    for number, item in enumerate(items):
        assert item.original is not None
        by_unit[item.original.place.unit].append(number)
    tasks, gone = [], set()
    for unit, task in enumerate(document.units):
        members = sorted(by_unit[unit], key=lambda i: items[i].position)
        if not members and task.get("Ops", True):
            gone.add(task["Id"])
            continue
        ops = [values[i] for i in members]
        old = task.get("Ops", [task.get("Op")])
        same = len(ops) == len(old) and all(a is b for a, b in zip(ops, old, strict=True))
        key = "Ops" if "Ops" in task else "Op"
        content: Any = ops if key == "Ops" else ops[0]
        tasks.append(task if same else {k: content if k == key else v for k, v in task.items()})
    if not gone and all(a is b for a, b in zip(tasks, document.units, strict=True)):
        return document.root
    changes: dict[str, Any] = {"TaskInfos": tasks}
    if gone:
        changes["ProcessorGroups"] = _without_tasks(document.root["ProcessorGroups"], gone)
    return {key: changes.get(key, item) for key, item in document.root.items()}


def _without_tasks(groups: Any, gone: set[int]) -> Any:
    """Return the groups without the places of removed tasks, and without empty groups."""
    if isinstance(groups, dict):
        for key in ("ResourceGroups", "TaskGroups"):
            if isinstance(groups.get(key), list):
                inner = _without_tasks(groups[key], gone)
                if inner is groups[key]:
                    return groups
                return {k: inner if k == key else v for k, v in groups.items()}
        return groups
    kept = []
    for group in groups:
        if isinstance(group, dict) and group.get("TaskId") in gone:
            continue
        inner = _without_tasks(group, gone) if isinstance(group, dict) else group
        empty = inner is not group and not any(
            inner[key] for key in ("ResourceGroups", "TaskGroups") if key in inner
        )
        if not empty:
            kept.append(inner)
    same = len(kept) == len(groups) and all(a is b for a, b in zip(kept, groups, strict=True))
    return groups if same else kept


def arrange(template: Template, items: Sequence[Item], values: Sequence[dict[str, Any]]) -> Any:
    """Return the file's root object.

    Raises `GraphError` if ops need each other in a circle.

    Parameters
    ----------
    items : sequence of Item
        Each after those that it uses.
    values : sequence of dict
        Their JSON objects.
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
    template: Template, original: int | None, needs: set[int], number_of: dict[int, int]
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
    template: Template, old: dict[str, Any] | None, users: list[int], number_of: dict[int, int]
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


def print_document(document: Document, root: Any) -> bytes:
    """Print a file.

    Parameters
    ----------
    document : Document
        Determines the layout, and has the text of unchanged parts.
    root : object
        Printed in place of ``document.root``.
    """
    old = document.root
    assert isinstance(old, JsonObject)
    text = document.text
    pieces = b"".join(_pieces(root, text, _Layout(document), 0))
    return text[: old.start] + pieces + text[old.end :]


class _Layout:
    """Which containers take several lines, and how far they are indented.

    The serializer breaks lines down to some depth; deeper values and arrays of numbers are on one
    line without spaces.
    """

    def __init__(self, document: Document) -> None:
        text, root = document.text, document.root
        assert isinstance(root, JsonObject)
        head = text[root.start + 1 : root.end].split(b'"', 1)[0]
        self.indent = len(head) - head.rfind(b"\n") - 1 if b"\n" in head else 0
        self.depth = -1
        sample = [root, *document.units[:1]]
        pending: list[tuple[Any, int]] = [(value, 2 * i) for i, value in enumerate(sample)]
        while pending and self.indent:
            value, depth = pending.pop()
            if isinstance(value, JsonObject):
                if b"\n" in text[value.start : value.end]:
                    self.depth = max(self.depth, depth)
                pending += [(item, depth + 1) for item in value.values() if depth != 0]
            elif isinstance(value, JsonArray):
                # if no op has arguments, only the lists of tensors reach the full depth
                if b"\n" in text[value.start : value.end] and any(map(_is_object, value)):
                    self.depth = max(self.depth, depth)
                pending += [(item, depth + 1) for item in value]


def _pieces(value: Any, text: bytes, layout: _Layout, depth: int) -> Iterator[bytes]:
    if isinstance(value, (JsonObject, JsonArray)):
        yield text[value.start : value.end]
        return
    is_object = isinstance(value, dict)
    lines = depth <= layout.depth and (
        (is_object and value) or (isinstance(value, list) and any(map(_is_object, value)))
    )
    if not is_object and not isinstance(value, list):
        yield compact_json(value).encode()
        return
    items = value.items() if is_object else [(None, item) for item in value]
    yield b"{" if is_object else b"["
    for number, (key, item) in enumerate(items):
        if number:
            yield b","
        if lines:
            yield b"\n" + b" " * (layout.indent * (depth + 1))
        if is_object:
            yield json.dumps(key, ensure_ascii=False).encode() + (b": " if lines else b":")
        yield from _pieces(item, text, layout, depth + 1)
    if lines:
        yield b"\n" + b" " * (layout.indent * depth)
    yield b"}" if is_object else b"]"


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)
