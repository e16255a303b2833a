"""Validation of an ARK file as a whole: all its problems, with places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.dialects import json_text
from passlib.dialects.problem import Problem
from passlib.errors import FormatError
from passlib.families.ark.document import GROUPS, OpPlace
from passlib.families.ark.json_values import kind
from passlib.families.ark.operators import FileOp
from passlib.families.ark.tensors import Tensor
from passlib.families.ark.validation.graph import check_graph
from passlib.families.ark.validation.ops import check_op
from passlib.families.ark.validation.plan import check_plan
from passlib.families.ark.validation.report import Report
from passlib.families.ark.validation.tensors import TensorChecker


def validate(text: bytes) -> list[Problem]:
    """Check the text of a model file or of a plan file.

    Returns
    -------
    list of Problem
        In the order of the file; problems of the graph as a whole come last.
    """
    report = Report()
    try:
        root = json_text.parse(text)
    except FormatError as error:
        report.error("", str(error))
        return report.problems
    if not isinstance(root, dict):
        report.error("", f"an ARK file is an object, not {kind(root)}")
        return report.problems
    plan = "Nodes" not in root and "TaskInfos" in root
    rank = report.expect(root, "Rank", int, "")
    world = report.expect(root, "WorldSize", int, "")
    if rank is not None and world is not None and not 0 <= rank < world:
        report.error("Rank", f"{rank} is not a rank of a job of {world}")
    units_key = "TaskInfos" if plan else "Nodes"
    units = report.expect(root, units_key, list, "")
    checker = TensorChecker(report, rank, world, plan=plan)
    ops: list[FileOp] = []
    sound = units is not None
    for number, unit in enumerate(units or ()):
        read = _unit(report, checker, unit, number, f"{units_key}[{number}]", plan=plan)
        sound = sound and read is not None
        ops += read or ()
    for op in ops:
        check_op(report, op, rank)
    if plan:
        check_plan(report, root, units or ())
    elif sound and units is not None:
        check_graph(report, units, ops)
    return report.problems


def _unit(
    report: Report, checker: TensorChecker, unit: Any, number: int, path: str, *, plan: bool
) -> list[FileOp] | None:
    """Check a node or a task; return its ops, or None if its structure is damaged."""
    if not isinstance(unit, dict):
        report.error(path, f"expected an object, not {kind(unit)}")
        return None
    sound = report.expect(unit, "Id", int, path) is not None
    for key in ("NumWarps", "SramBytes") if plan else ():
        report.expect(unit, key, int, path)
    for key in () if plan else ("ProducerNodeIds", "ConsumerNodeIds"):
        listed = report.expect(unit, key, list, path)
        sound = sound and listed is not None
        for i, item in enumerate(listed or ()):
            if type(item) is not int:
                report.error(f"{path}.{key}[{i}]", f"expected an Id, not {kind(item)}")
                sound = False
    if "Op" in unit and "Ops" not in unit:
        op = _op(report, checker, unit["Op"], number, 0, f"{path}.Op", plan=plan)
        return None if op is None or not sound else [op]
    listed = report.expect(unit, "Ops", list, path)
    read = [
        _op(report, checker, op, number, i, f"{path}.Ops[{i}]", plan=plan)
        for i, op in enumerate(listed or ())
    ]
    found = [op for op in read if op is not None]
    return found if sound and listed is not None and len(found) == len(read) else None


def _op(
    report: Report,
    checker: TensorChecker,
    op: Any,
    unit: int,
    position: int,
    path: str,
    *,
    plan: bool,
) -> FileOp | None:
    if not isinstance(op, dict):
        report.error(path, f"expected an object, not {kind(op)}")
        return None
    wanted = {"Type": str, "Name": str, "IsVirtual": bool, "Args": dict}
    found = [report.expect(op, key, type_, path) is not None for key, type_ in wanted.items()]
    if plan and (config := report.expect(op, "Config", dict, path)) is not None:
        for key in ("NumWarps", "SramBytes", "NumTasks"):
            if type(config.get(key)) is not int:
                report.warning(f"{path}.Config.{key}", "plans of ARK have an integer here")
    groups: list[Sequence[Tensor]] = []
    for group in GROUPS:
        listed = report.expect(op, group, list, path)
        found.append(listed is not None)
        read = [
            checker.check(value, f"{path}.{group}[{i}]") for i, value in enumerate(listed or ())
        ]
        found.append(None not in read)
        groups.append([tensor for tensor in read if tensor is not None])
    if not all(found):
        return None
    place = OpPlace(unit, position, f"{unit}.{position}", path, op)
    reads, writes, results = map(tuple, groups)
    checker.produced(results, path)
    return FileOp(place, reads, writes, results)
