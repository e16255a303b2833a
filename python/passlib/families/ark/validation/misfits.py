"""Rules for the tensors and arguments of single ops of a known type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passlib.families.ark import schema
from passlib.families.ark.shapes import Operand, fits, infer_result
from passlib.families.ark.tensors import Tensor
from passlib.lowering.misfit import Misfit


def misfits(
    op: str, args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Check the tensors and arguments of an op of a known type.

    Parameters
    ----------
    op : str
        Its type.
    args : mapping
        Bare values of its arguments.
    reads, writes : sequence of Tensor
        As many as the operator takes.

    Yields
    ------
    str
        One problem.
    """
    operands = [Operand(tensor.dtype, tensor.shape) for tensor in reads]
    try:
        result = infer_result(op, args, operands)
    except Misfit as error:
        yield str(error)
        return
    except (KeyError, TypeError):
        return  # arguments that are missing or of the wrong type are reported elsewhere
    operator = schema.find(op)
    if result is None or operator is None or not operator.writes or not writes:
        return
    if op.startswith("Reduce") and writes[0].id == reads[0].id:
        yield f"a reduction cannot write to tensor {reads[0].id}, which it reads"
    written = Operand(writes[0].dtype, writes[0].shape)
    if not fits(op, result, written):
        yield (
            f"it computes {result.dtype} {list(result.shape)}, which does not fit the "
            f"{written.dtype} {list(written.shape)} that it writes to"
        )


def padding_misfits(
    args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Check the ``PaddedShape`` of a matrix product whose shapes fit.

    Tiles of a product reach into the padding, so it follows from that of the operands.
    """
    padded = [Operand(tensor.dtype, tensor.padded) for tensor in reads]
    try:
        result = infer_result("Matmul", args, padded)
    except Misfit as error:
        yield f"the padded operands do not fit: {error}"
        return
    if result is not None and result.shape != writes[0].padded:
        yield (
            f"{list(writes[0].padded)}, but the padding of its operands makes it "
            f"{list(result.shape)}"
        )
