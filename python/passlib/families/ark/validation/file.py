"""Validation of an ARK file as a whole: all its problems, with places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passlib.dialects import json_text
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, GraphError
from passlib.families.ark import schema
from passlib.families.ark.arguments import values
from passlib.families.ark.document import GROUPS, OpPlace, kind, ordered
from passlib.families.ark.operators import FileOp
from passlib.families.ark.tensors import ITEM_SIZES, Tensor
from passlib.families.ark.validation.args import (
    Report,
    TensorChecker,
    check_args,
    communication_misfits,
    derive,
    misfits,
    padding_misfits,
)
from passlib.families.ark.validation.hazards import Access, find_hazards
from passlib.lowering.types import Misfit


def check_op(report: Report, op: FileOp, rank: int | None) -> None:
    """Check one op of the file for a rank, which is None if damaged."""
    path, value = op.place.path, op.place.value
    args_fine = check_args(report, op)
    consumed = {tensor.id for tensor in (*op.reads, *op.writes)}
    for i, tensor in enumerate(op.results):
        if tensor.id in consumed:
            report.error(
                f"{path}.ResultTensors[{i}]", f"tensor {tensor.id} is also an input of this op"
            )
    is_tensor = op.type == schema.TENSOR
    if value["IsVirtual"] != is_tensor:
        what = "virtual" if value["IsVirtual"] else "not virtual"
        report.warning(f"{path}.IsVirtual", f"the operator {op.type} is marked as {what}")
    if is_tensor:
        _view(report, op)
        return
    operator = schema.find(op.type)
    if operator is None:
        if not value["IsVirtual"]:
            report.warning(f"{path}.Type", f"unknown operator {op.type!r}")
        return
    if _counts(report, op, operator) and args_fine:
        args = values(value["Args"])
        problems = list(misfits(op.type, args, op.reads, op.writes))
        for problem in problems:
            report.error(path, problem)
        if op.type == "Matmul" and not problems:
            _matmul(report, op, args)
        if operator.effects:
            for key, problem in communication_misfits(
                op.type, args, op.reads, op.writes, -1 if rank is None else rank
            ):
                report.error(f"{path}.{key}", problem)


def _counts(report: Report, op: FileOp, operator: schema.Operator) -> bool:
    path, fine = op.place.path, True
    for key, tensors, count, more in (
        ("ReadTensors", op.reads, operator.reads, False),
        ("WriteTensors", op.writes, operator.writes, operator.many),
        ("ResultTensors", op.results, operator.results, False),
    ):
        if len(tensors) < count or (len(tensors) > count and not more):
            least = "at least " if more else ""
            report.error(f"{path}.{key}", f"{op.type} has {least}{count}, not {len(tensors)}")
            fine = False
    if not fine:
        return False
    regions = op.writes if operator.writes else op.reads
    for i, (result, region) in enumerate(zip(op.results, regions, strict=False)):
        if result[1:-1] != region[1:-1]:
            report.error(
                f"{path}.ResultTensors[{i}]",
                f"tensor {result.id} does not describe the same memory as tensor {region.id}, "
                "from which it results",
            )
    return True


def _view(report: Report, op: FileOp) -> None:
    path = op.place.path
    if op.writes:
        report.error(f"{path}.WriteTensors", "a virtual op must write nothing")
    if len(op.results) != 1:
        report.error(f"{path}.ResultTensors", f"a virtual op returns 1, not {len(op.results)}")
    elif op.reads and op.reads[0].buffer != op.results[0].buffer:
        report.error(
            f"{path}.ResultTensors[0]",
            f"it is in buffer {op.results[0].buffer}, but views buffer {op.reads[0].buffer}",
        )
    elif op.reads and not _is_view(op.reads[0], op.results[0]):
        report.error(
            f"{path}.ResultTensors[0]",
            f"it views {op.reads[0].dtype} {list(op.reads[0].shape)} as {op.results[0].dtype} "
            f"{list(op.results[0].shape)}; a view of another element type must be from or to BYTE, "
            "with as many bytes in the last dimension",
        )


def _is_view(source: Tensor, result: Tensor) -> bool:
    """Whether ARK could make a view, which changes the element type only from or to bytes."""
    dtypes = {source.dtype, result.dtype}
    if len(dtypes) == 1 or not dtypes <= ITEM_SIZES.keys():
        return True
    rows = source.shape[:-1] == result.shape[:-1]
    size = source.shape[-1] * source.item_size
    return "BYTE" in dtypes and rows and size == result.shape[-1] * result.item_size


def _matmul(report: Report, op: FileOp, args: dict[str, Any]) -> None:
    """Check the derived arguments of a Matmul, and the padding of its product."""
    try:
        wanted = derive(op.reads, op.writes[0], args)
    except Misfit:
        return
    for name, value in wanted.items():
        if name in args and list(args[name]) != value:
            report.error(
                f"{op.place.path}.Args.{name}",
                f"{list(args[name])}, but its tensors require {value}",
            )
    if op.place.single:  # files of August 2024 and later
        for problem in padding_misfits(args, op.reads, op.writes):
            report.error(f"{op.place.path}.WriteTensors[0].PaddedShape", problem)


def check_graph(report: Report, units: Sequence[dict[str, Any]], ops: Sequence[FileOp]) -> None:
    """Check the edges between nodes, which are structurally sound."""
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
    report: Report, units: Sequence[dict[str, Any]], ops: Sequence[FileOp], needs: list[set[int]]
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


def validate(text: bytes) -> list[Problem]:
    """Return the problems of a model file or a plan file in its order, those of the graph last."""
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
