"""Grouping of ops into the nodes of a model file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passlib.families.ark.operators import ID
from passlib.families.ark.ordering import circle_error
from passlib.families.ark.writing.items import Item, written_sources
from passlib.graph.attribute_text import parse_position
from passlib.graph.ordering import stable_order


def group_items(items: Sequence[Item]) -> tuple[list[list[int]], list[int], list[set[int]]]:
    """Group the ops of each node, unless that makes a circle.

    Returns
    -------
    groups : list of list of int
        The items of each node.
    order : list of int
        The groups, each after those it needs.
    needs : list of set of int
        The groups that each group needs.

    Raises
    ------
    GraphError
        Ops need each other in a circle.
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
