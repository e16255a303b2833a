"""Writing of a graph in the form of the ARK file that it was read from: its ops, then the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import passlib._core as _core
from passlib._core import JsonArray, JsonObject
from passlib.dialects.json_text import Layout, keep, print_json
from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.document import Document, circle_error, ordered
from passlib.families.ark.operators import ID, FileOp
from passlib.families.ark.reading import Template
from passlib.families.ark.resolve import Describer, Resolved, Resolver
from passlib.families.ark.writing.values import (
    Item,
    op_value,
    require_fit,
    require_order,
    written_sources,
)
from passlib.graph.attributes import blame, parse_position
from passlib.graph.node import Entry, Node
from passlib.graph.ordering import stable_order


def group_items(items: Sequence[Item]) -> tuple[list[list[int]], list[int], list[set[int]]]:
    """Group the ops of each node, unless that makes a circle.

    Return the items of each group, an order in which each group comes after those it needs, and
    these. Raises `GraphError` if ops need each other in a circle.
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
            names = [repr(items[members[0]].resolved.node.name) for members in groups]
            raise circle_error(needs, names.__getitem__)
        apart |= {unit for unit in shared if unit is not None}


def original_unit(items: Sequence[Item], members: list[int]) -> int | None:
    """Return the node of the file that a group of items comes from."""
    original = items[members[0]].original
    return None if original is None else original.place.unit


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
        same = keep(ops, old) is old
        key = "Ops" if "Ops" in task else "Op"
        content: Any = ops if key == "Ops" else ops[0]
        tasks.append(task if same else {k: content if k == key else v for k, v in task.items()})
    if keep(tasks, document.units) is document.units:
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
    return keep(kept, groups)


def arrange(template: Template, items: Sequence[Item], values: Sequence[dict[str, Any]]) -> Any:
    """Return the file's root object, of ops that come after those they use, and their JSON objects.

    Raises `GraphError` if ops need each other in a circle.
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
    if keep(listed, units) is units:
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
    ids = {"Id": number, "ProducerNodeIds": producers, "ConsumerNodeIds": consumers}
    if old is None:
        single = template.document.variant.single_op and len(ops) == 1
        return {**ids, **({"Op": ops[0]} if single else {"Ops": ops})}
    members = {key: old[key] if value == old[key] else value for key, value in ids.items()}
    members |= {"Ops": keep(ops, old["Ops"])} if "Ops" in old else {"Op": ops[0]}
    result = {key: members.get(key, item) for key, item in old.items()}
    return old if all(result[key] is item for key, item in old.items()) else result


class _Layout(Layout):
    """Which containers take several lines, and how far they are indented.

    The serializer breaks lines down to some depth; deeper values and arrays of numbers are on one
    line without spaces.
    """

    def __init__(self, document: Document) -> None:
        text, root = document.text, document.root
        super().__init__(text, root)
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

    def takes_lines(self, value: Any, depth: int) -> bool:
        """Whether a container takes several lines."""
        return depth <= self.depth and (_is_object(value) or any(map(_is_object, value)))

    def separators(self, *, lines: bool) -> tuple[str, str]:
        """Return the separators of items, and of key and value."""
        return ",", ": " if lines else ":"


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def write(template: Template, graph: _core.Graph, *, allow_removed: bool = False) -> bytes:
    """Write a graph in the form of the file that it was read from.

    Raises `GraphError` if a node with side effects was removed, nodes do not fit together, or two
    accesses to the same memory have lost their order; `UnsupportedError` if a new node cannot be
    described in this format. ``allow_removed`` lets nodes with side effects be missing.
    """
    if template.graph.equals(graph):
        return template.text
    described = graph.nodes()
    nodes = _nodes(described)
    claims = _claims(template, nodes)
    if not allow_removed:
        _require_effects(template, claims)
    resolver = _resolver(template)
    resolved = [resolver.resolve(node) for node in nodes]
    hidden = {str(node.attrs.get(ID)) for node in template.nodes} - template.ops.keys()
    heads = {described[position].name for position, _, _ in graph.heads()}
    items = _items(template, resolved, claims, hidden, heads)
    if template.document.plan:
        for item in items:
            if item.original is None:
                raise UnsupportedError(
                    f"{blame(item.resolved.node)}: a plan places every op on processors, so new "
                    "ones cannot be added; run the pass on the model file"
                )
    values = [op_value(template, item) for item in items]
    changed = [
        (item.resolved, value["Args"])
        for item, value in zip(items, values, strict=True)
        if item.original is None or value is not item.original.place.value
    ]
    document = template.document
    padding = document.variant.padded_products and not document.plan
    require_fit(changed, padding=padding, rank=document.rank)
    if not document.plan:  # the order of a plan is that of its tasks on processors
        require_order([item.resolved for item in items], lambda: _before(template))
    text, root = document.text, document.root
    printed = print_json(arrange(template, items, values), _Layout(document))
    return text[: root.start] + printed + text[root.end :]  # type: ignore[attr-defined]


def _nodes(described: Sequence[_core.NodeTuple]) -> list[Node]:
    """Build the nodes, each after its inputs."""
    needs = [[*(i for i, _, _ in node.inputs), *node.control_deps] for node in described]
    order = ordered(needs, lambda i: f"node {described[i].name!r}")
    made: dict[int, Node] = {}
    for position in order:
        op, name, attrs, inputs, count, deps, _ = described[position]
        made[position] = Node(
            op,
            name,
            attrs,
            [Entry(made[i], index, version) for i, index, version in inputs],
            count,
            [made[i] for i in deps],
        )
    return [made[position] for position in order]


def _before(template: Template) -> list[Resolved]:
    resolver = _resolver(template)
    resolved = [resolver.resolve(node) for node in _nodes(template.nodes)]
    return [one for one in resolved if one.node.attrs.get(ID) in template.ops]


def _claims(template: Template, nodes: Sequence[Node]) -> dict[int, FileOp]:
    """Find the op of the file that each node represents; the first of several nodes gets it."""
    claims: dict[int, FileOp] = {}
    taken: set[str] = set()
    for node in nodes:
        key = node.attrs.get(ID, "")
        op = template.ops.get(key)
        if op is None or key in taken:
            continue
        if node.op == op.type or (node.is_variable and op.declares):
            claims[id(node)] = op
            taken.add(key)
    return claims


def _require_effects(template: Template, claims: Mapping[int, FileOp]) -> None:
    present = {op.place.key for op in claims.values()}
    gone = [
        f"{template.parts.names[key]!r} ({op.type})"
        for key, op in template.ops.items()
        if op.effects and key not in present
    ]
    if gone:
        raise GraphError(
            f"the pass removed nodes with side effects: {', '.join(gone)}; keep nodes with the "
            "attribute '__effects__', or pass allow_removed=True"
        )


def _resolver(template: Template) -> Resolver:
    tensors = [t for op in template.ops.values() for t in (*op.reads, *op.writes, *op.results)]
    keys: Sequence[str] = list(tensors[0].source) if tensors else ()
    return Resolver(
        Describer(
            padding=template.document.variant.padding,
            keys=keys,
            tensor_id=max((tensor.id for tensor in tensors), default=-1) + 1,
            buffer_id=max((tensor.buffer for tensor in tensors), default=-1) + 1,
        )
    )


def _items(
    template: Template,
    resolved: list[Resolved],
    claims: Mapping[int, FileOp],
    hidden: set[str],
    heads: set[str],
) -> list[Item]:
    """Select the ops of the new file, and add declarations for the memory of new nodes."""
    full = any(op.virtual for op in template.ops.values())
    unused = _unused_views(template, resolved, claims, heads)
    items = []
    for one in resolved:
        original = claims.get(id(one.node))
        if original is None and one.virtual and (not full or one.node.attrs.get(ID) in hidden):
            continue
        if id(one.node) in unused:
            continue
        if one.declares and full:
            memory = Node(schema.TENSOR, "")
            declared = Resolved(memory, (), (), one.writes)
            items.append(Item(declared, None))
        items.append(Item(one, original))
    return items


def _unused_views(
    template: Template, resolved: list[Resolved], claims: Mapping[int, FileOp], heads: set[str]
) -> set[int]:
    """Find declarations and views whose last user was removed."""
    had_users = {position for node in template.nodes for position, _, _ in node.inputs}
    used_before = {template.nodes[position].attrs.get(ID) for position in had_users}
    users: dict[int, int] = {}
    for one in resolved:
        for entry in one.node.inputs:
            users[id(entry.node)] = users.get(id(entry.node), 0) + 1
    unused: set[int] = set()
    for one in reversed(resolved):
        node = one.node
        if node.op != schema.TENSOR or users.get(id(node)) or node.name in heads:
            continue
        if id(node) in claims and node.attrs.get(ID) in used_before:
            unused.add(id(node))
            for entry in node.inputs:
                users[id(entry.node)] -= 1
    return unused
