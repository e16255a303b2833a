"""Arguments of Matmul that repeat what its tensors say, in files of May 2024."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib.dialects.ark.arguments import values
from passlib.dialects.ark.resolve import Resolved
from passlib.dialects.ark.shapes import Misfit, matmul_sizes
from passlib.dialects.ark.tensors import Tensor
from passlib.errors import GraphError
from passlib.graph.attributes import blame

__all__ = ["derive", "derived_arguments"]


def derive(
    left: Tensor, right: Tensor, product: Tensor, *, transpose_left: bool, transpose_right: bool
) -> dict[str, list[int]]:
    """Compute the four arguments.

    Parameters
    ----------
    left, right, product : Tensor
    transpose_left, transpose_right : bool

    Raises
    ------
    Misfit
        The tensors do not fit together.
    """
    _, m, n, k = matmul_sizes(
        left.shape, right.shape, transpose_left=transpose_left, transpose_right=transpose_right
    )
    steps = left.box.strides[-1], product.box.strides[-1], right.box.strides[-1]
    return {
        "InputDimNC": _leading(left),
        "OtherDimNC": _leading(right),
        "ShapeMNK": [m, n, k],
        "StridesACDB": [steps[0], steps[1], steps[1], steps[2]],
    }


def derived_arguments(
    one: Resolved, args: Mapping[str, Any], old: Mapping[str, Any]
) -> dict[str, Any]:
    """Bring the derived arguments of a Matmul up to date.

    Raises
    ------
    GraphError
        Its tensors do not fit together.
    """
    given = values(args)
    try:
        derived = derive(
            one.reads[0],
            one.reads[1],
            one.writes[0],
            transpose_left=given["TransposeInput"],
            transpose_right=given["TransposeOther"],
        )
    except Misfit as error:
        raise GraphError(f"{blame(one.node)}: {error}") from None
    result = dict(args)
    for name, value in derived.items():
        same = name in old and values({name: old[name]})[name] == value
        result[name] = old[name] if same else {"DIMS": value}
    order = [*args, *sorted(result.keys() - args.keys())]
    if list(args) == sorted(args):
        order.sort()  # as ARK's serializer lists them
    return {name: result[name] for name in order}


def _leading(tensor: Tensor) -> list[int]:
    four = (1,) * (4 - len(tensor.shape)) + tensor.shape
    return list(four[:2])
