"""Whether what a pass left behind is sound: tensors that fit their operators, memory in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from passlib.dialects.ark import arguments, schema
from passlib.dialects.ark.communication import communication_misfits
from passlib.dialects.ark.hazards import Access, find_hazards
from passlib.dialects.ark.operators import ID
from passlib.dialects.ark.resolve import Resolved
from passlib.dialects.ark.shapes import Misfit, Operand, fits, infer_result
from passlib.dialects.ark.tensors import Tensor
from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.graph.node import Node

__all__ = ["misfits", "padding_misfits", "require_fit", "require_order"]


def misfits(
    op: str, args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Say what is wrong with the tensors and arguments of an op of a known type.

    Parameters
    ----------
    op : str
    args : mapping
        Bare values of its arguments.
    reads, writes : sequence of Tensor
        As many as the operator takes.
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
        yield f"it writes to tensor {reads[0].id}, which it reads: a reduction has no room there"
    written = Operand(writes[0].dtype, writes[0].shape)
    if not fits(op, result, written):
        yield (
            f"it gives {result.dtype} {list(result.shape)}, which does not fit the "
            f"{written.dtype} {list(written.shape)} that it writes to"
        )


def padding_misfits(
    args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Say what is wrong with the ``PaddedShape`` of a product whose shapes fit.

    Tiles of a product reach into the padding, so it follows from that of the operands.
    """
    padded = [Operand(tensor.dtype, tensor.padded) for tensor in reads]
    try:
        result = infer_result("Matmul", args, padded)
    except Misfit as error:
        yield f"padded, the operands do not fit: {error}"
        return
    if result is not None and result.shape != writes[0].padded:
        yield (
            f"{list(writes[0].padded)}, but the padding of its operands makes it "
            f"{list(result.shape)}"
        )


def require_fit(
    changed: Sequence[tuple[Resolved, Mapping[str, Any]]], *, padding: bool, rank: int
) -> None:
    """Check the tensors of ops that a pass changed.

    Parameters
    ----------
    changed : sequence of (Resolved, mapping)
        The ops with their ``Args``.
    padding : bool
        Whether the paddings of matrix products must fit too.
    rank : int
        The rank of the file.

    Raises
    ------
    GraphError
        The message names the node.
    """
    for one, tagged in changed:
        if one.virtual:
            continue
        args = arguments.values(tagged)
        for problem in misfits(one.node.op, args, one.reads, one.writes):
            raise GraphError(f"{blame(one.node)}: {problem}")
        if padding and one.node.op == "Matmul":
            for problem in padding_misfits(args, one.reads, one.writes):
                raise GraphError(f"{blame(one.node)}: its PaddedShape is {problem}")
        operator = schema.find(one.node.op)
        if operator is not None and operator.effects:
            for key, problem in communication_misfits(
                one.node.op, args, one.reads, one.writes, rank
            ):
                raise GraphError(f"{blame(one.node)}: {key}: {problem}")


def require_order(ops: Sequence[Resolved], before: Callable[[], Sequence[Resolved]]) -> None:
    """Check that a pass left no access to memory without an order that had one.

    Parameters
    ----------
    ops : sequence of Resolved
        After the pass.
    before : callable
        Gives those of the model that the pass was given; what was open there may stay open.

    Raises
    ------
    GraphError
        The message names the nodes.
    """
    found = _hazards(ops)
    if not found:
        return
    known = {_identity(hazard) for hazard in _hazards(before())}
    for hazard in found:
        if _identity(hazard) in known:
            continue
        first, second, buffer, stale = hazard
        if stale:
            raise GraphError(
                f"{blame(second)} reads memory of buffer {buffer} that {blame(first)} has "
                "overwritten before"
            )
        raise GraphError(
            f"{blame(first)} and {blame(second)} use the same memory of buffer {buffer}, and "
            "nothing decides which comes first"
        )


_Found = tuple[Node, Node, int, bool]


def _identity(hazard: _Found) -> tuple[frozenset[str], int, bool]:
    first, second, buffer, stale = hazard
    return frozenset((first.attrs.get(ID, ""), second.attrs.get(ID, ""))), buffer, stale


def _hazards(ops: Sequence[Resolved]) -> list[_Found]:
    position = {id(one.node): i for i, one in enumerate(ops)}
    accesses = [
        Access(
            () if one.virtual else one.reads,
            one.writes,
            one.results,
            [position[id(node)] for node in _sources(one.node, position)],
        )
        for one in ops
    ]
    return [
        (ops[hazard.first].node, ops[hazard.second].node, hazard.buffer, hazard.stale)
        for hazard in find_hazards(accesses)
    ]


def _sources(node: Node, position: Mapping[int, int]) -> Iterator[Node]:
    """Find the nodes that it needs, through those that are not in the list."""
    pending = [*(entry.node for entry in node.inputs), *node.control_deps]
    seen: set[int] = set()
    while pending:
        source = pending.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        if id(source) in position:
            yield source
        else:
            pending += [entry.node for entry in source.inputs]
