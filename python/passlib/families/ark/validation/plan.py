"""Checks of tasks and their places on processors, which only plan files have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.families.ark.json_values import kind
from passlib.families.ark.validation.report import Report


def check_plan(report: Report, root: dict[str, Any], tasks: Sequence[Any]) -> None:
    """Check a plan."""
    if "Architecture" not in root:
        report.warning("Architecture", "the key is missing, which newer versions of ARK require")
    else:
        report.expect(root, "Architecture", str, "")
    processors = report.expect(root, "NumProcessors", int, "")
    report.expect(root, "NumWarpsPerProcessor", int, "")
    known: set[int] = set()
    for number, task in enumerate(tasks):
        if not isinstance(task, dict) or type(task.get("Id")) is not int:
            continue
        if task["Id"] in known:
            report.error(f"TaskInfos[{number}].Id", f"two tasks have the Id {task['Id']}")
        known.add(task["Id"])
    for g, group in enumerate(report.expect(root, "ProcessorGroups", list, "") or ()):
        path = f"ProcessorGroups[{g}]"
        if not _object(report, group, path):
            continue
        _range(report, group, "ProcessorRange", path, processors)
        for r, resources in enumerate(report.expect(group, "ResourceGroups", list, path) or ()):
            inner = f"{path}.ResourceGroups[{r}]"
            if not _object(report, resources, inner):
                continue
            for key in ("ProcessorRange", "WarpRange", "SramRange"):
                _range(report, resources, key, inner, None)
            for t, placed in enumerate(report.expect(resources, "TaskGroups", list, inner) or ()):
                place = f"{inner}.TaskGroups[{t}]"
                if _object(report, placed, place):
                    _task(report, placed, place, known)


def _task(report: Report, placed: dict[str, Any], path: str, known: set[int]) -> None:
    number = report.expect(placed, "TaskId", int, path)
    if number is not None and number not in known:
        report.error(f"{path}.TaskId", f"there is no task {number}")
    _range(report, placed, "TaskRange", path, None)
    report.expect(placed, "Granularity", int, path)


def _range(report: Report, owner: dict[str, Any], key: str, path: str, limit: int | None) -> None:
    value = report.expect(owner, key, list, path)
    if value is None:
        return
    place = f"{path}.{key}"
    if len(value) not in (2, 3) or any(type(number) is not int for number in value):
        report.error(place, "expected a start, an end and optionally a step")
    elif not 0 <= value[0] <= value[1] or (len(value) == 3 and value[2] < 1):
        report.error(place, f"{list(value)} is not a range")
    elif limit is not None and value[1] > limit:
        report.error(place, f"{list(value)} exceeds the {limit} processors")


def _object(report: Report, value: Any, path: str) -> bool:
    if isinstance(value, dict):
        return True
    report.error(path, f"expected an object, not {kind(value)}")
    return False
