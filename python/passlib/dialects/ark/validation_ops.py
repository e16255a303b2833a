"""Checks of single ops: their tensors and arguments against their type."""

from __future__ import annotations

from typing import Any

from passlib.dialects.ark import schema
from passlib.dialects.ark.arguments import values
from passlib.dialects.ark.checks import misfits
from passlib.dialects.ark.matmul_args import derive
from passlib.dialects.ark.operators import FileOp
from passlib.dialects.ark.report import Report
from passlib.dialects.ark.shapes import Misfit
from passlib.dialects.ark.tensors import MAX_RANK, kind, read_tensor
from passlib.errors import FormatError

__all__ = ["check"]


def check(report: Report, op: FileOp) -> None:
    """Check one op."""
    path, value = op.place.path, op.place.value
    args_fine = _arguments(report, value["Args"], f"{path}.Args")
    consumed = {tensor.id for tensor in (*op.reads, *op.writes)}
    for i, tensor in enumerate(op.results):
        if tensor.id in consumed:
            report.error(
                f"{path}.ResultTensors[{i}]", f"tensor {tensor.id} is also an input of this op"
            )
    is_tensor = op.type == schema.TENSOR
    if value["IsVirtual"] != is_tensor:
        what = "is" if value["IsVirtual"] else "is not"
        report.warning(f"{path}.IsVirtual", f"the operator {op.type} {what} virtual here")
    if is_tensor:
        _view(report, op)
        return
    operator = schema.find(op.type)
    if operator is None:
        if not value["IsVirtual"]:
            report.warning(f"{path}.Type", f"the operator {op.type!r} is not known")
        return
    counts = _counts(report, op, operator)
    for name, tag in operator.arguments.items():
        place = f"{path}.Args.{name}"
        if name not in value["Args"]:
            report.error(place, f"{op.type} needs this argument")
            args_fine = False
        elif isinstance(value["Args"][name], dict) and tag not in value["Args"][name]:
            report.error(place, f"the argument is of type {tag}")
            args_fine = False
    if counts and args_fine:
        args = values(value["Args"])
        for problem in misfits(op.type, args, op.reads, op.writes):
            report.error(path, problem)
        if op.type == "Matmul":
            _derived(report, op, args)


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
                "which it comes from",
            )
    return True


def _view(report: Report, op: FileOp) -> None:
    path = op.place.path
    if op.writes:
        report.error(f"{path}.WriteTensors", "a virtual op writes nothing")
    if len(op.results) != 1:
        report.error(f"{path}.ResultTensors", f"a virtual op gives 1, not {len(op.results)}")
    elif op.reads and op.reads[0].buffer != op.results[0].buffer:
        report.error(
            f"{path}.ResultTensors[0]",
            f"it shows buffer {op.results[0].buffer}, and is a view of buffer {op.reads[0].buffer}",
        )


def _derived(report: Report, op: FileOp, args: dict[str, Any]) -> None:
    try:
        wanted = derive(
            op.reads[0],
            op.reads[1],
            op.writes[0],
            transpose_left=args["TransposeInput"],
            transpose_right=args["TransposeOther"],
        )
    except Misfit:
        return
    for name, value in wanted.items():
        if name in args and list(args[name]) != value:
            report.error(
                f"{op.place.path}.Args.{name}", f"{list(args[name])}, but its tensors say {value}"
            )


def _arguments(report: Report, args: dict[str, Any], path: str) -> bool:
    fine = True
    for name, item in args.items():
        place = f"{path}.{name}"
        if not isinstance(item, dict) or len(item) != 1:
            report.error(place, "an object of one type and its value is wanted")
            fine = False
            continue
        tag, value = next(iter(item.items()))
        if tag not in schema.ARGUMENT_TYPES:
            report.error(place, f"there is no type {tag!r}")
            fine = False
        elif (problem := _misfit(tag, value, place)) is not None:
            report.error(place, problem)
            fine = False
    return fine


def _misfit(tag: str, value: Any, place: str) -> str | None:
    """Say what is wrong with a value of a type."""
    if tag == "BOOL":
        return None if isinstance(value, bool) else f"true or false is wanted, not {kind(value)}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if tag == "FLOAT":
        return None if number else f"a number is wanted, not {kind(value)}"
    if tag == "DIMS":
        sizes = isinstance(value, list) and all(type(size) is int for size in value)
        if not sizes or len(value) > MAX_RANK:
            return f"up to {MAX_RANK} whole numbers are wanted, not {kind(value)}"
        return None
    if tag == "TENSOR":
        try:
            read_tensor(value, place)
        except FormatError as error:
            return str(error).removeprefix(f"{place}: ")
        return None
    if tag == "OFFSET":
        bare = type(value) is int  # so in an example of ARK's documentation
        members = isinstance(value, dict) and all(
            type(value.get(key)) is int for key in ("BufferId", "Value")
        )
        return None if bare or members else "BufferId and Value are wanted"
    whole = type(value) is int or (number and float(value).is_integer())
    return None if whole else f"a whole number is wanted, not {kind(value)}"
