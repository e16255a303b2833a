"""Updating those arguments of Matmul that follow from its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib.errors import GraphError
from passlib.families.ark.arguments import values
from passlib.families.ark.resolve import Resolved
from passlib.families.ark.validation.matmul_args import derive
from passlib.graph.attributes import blame
from passlib.lowering.misfit import Misfit


def derived_arguments(
    one: Resolved, args: Mapping[str, Any], old: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a Matmul with the derived ones computed from its tensors.

    Raises
    ------
    GraphError
        Its tensors do not fit together.
    """
    try:
        derived = derive(one.reads, one.writes[0], values(args))
    except Misfit as error:
        raise GraphError(f"{blame(one.node)}: {error}") from None
    result = dict(args)
    for name, value in derived.items():
        same = name in old and values({name: old[name]})[name] == value
        result[name] = old[name] if same else {"DIMS": value}
    order = [*args, *sorted(result.keys() - args.keys())]
    if list(args) == sorted(args):
        order.sort()  # as in ARK's serializer
    return {name: result[name] for name in order}
