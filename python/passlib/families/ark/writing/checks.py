"""Checks of a model before it is written: tensors fit their operators, memory is used in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import arguments, schema
from passlib.families.ark.operators import ID
from passlib.families.ark.resolve import Resolved
from passlib.families.ark.validation.communication import communication_misfits
from passlib.families.ark.validation.hazards import Access, find_hazards
from passlib.families.ark.validation.misfits import misfits, padding_misfits
from passlib.families.ark.writing.items import written_sources
from passlib.graph.attributes import blame
from passlib.graph.node import Node


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
        One of them breaks a rule; the message names the node.
    """
    for one, tagged in changed:
        if one.virtual:
            continue
        args = arguments.values(tagged)
        for problem in misfits(one.node.op, args, one.reads, one.writes):
            raise GraphError(f"{blame(one.node)}: {problem}")
        if padding and one.node.op == "Matmul":
            for problem in padding_misfits(args, one.reads, one.writes):
                raise GraphError(f"{blame(one.node)}: PaddedShape: {problem}")
        operator = schema.find(one.node.op)
        if operator is not None and operator.effects:
            for key, problem in communication_misfits(
                one.node.op, args, one.reads, one.writes, rank
            ):
                raise GraphError(f"{blame(one.node)}: {key}: {problem}")


def require_order(ops: Sequence[Resolved], before: Callable[[], Sequence[Resolved]]) -> None:
    """Check that all accesses to the same memory that were ordered before a pass still are.

    Parameters
    ----------
    ops : sequence of Resolved
        After the pass.
    before : callable
        Returns the ops before the pass. Accesses that were unordered there may stay so.

    Raises
    ------
    GraphError
        Two accesses have lost their order; the message names the nodes.
    UnsupportedError
        There are too many accesses to compare.
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
                "already overwritten"
            )
        raise GraphError(
            f"{blame(first)} and {blame(second)} use the same memory of buffer {buffer} in no "
            "defined order"
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
            list(written_sources(one.node, position)),
        )
        for one in ops
    ]
    hazards, unchecked = find_hazards(accesses)
    if unchecked is not None:
        raise UnsupportedError(
            f"{blame(ops[unchecked].node)}: up to here, memory is used in too many ways to check "
            "that the pass kept the order of accesses"
        )
    return [
        (ops[hazard.first].node, ops[hazard.second].node, hazard.buffer, hazard.stale)
        for hazard in hazards
    ]
