"""Checks of single ops: their tensors and arguments against their type."""

from __future__ import annotations

from typing import Any

from passlib.families.ark import schema
from passlib.families.ark.arguments import values
from passlib.families.ark.operators import FileOp
from passlib.families.ark.tensors import ITEM_SIZES, Tensor
from passlib.families.ark.validation.args import check_args
from passlib.families.ark.validation.communication import communication_misfits
from passlib.families.ark.validation.matmul_args import derive
from passlib.families.ark.validation.misfits import misfits, padding_misfits
from passlib.families.ark.validation.report import Report
from passlib.lowering.misfit import Misfit


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
