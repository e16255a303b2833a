"""Grouping of ops into the tasks of a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from passlib.families.ark.reading.template import Template
from passlib.families.ark.writing.items import Item


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
