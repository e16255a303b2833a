"""Arguments of Matmul in files of May 2024, which follow from its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.families.ark.shapes import matmul_sizes
from passlib.families.ark.tensors import Tensor


def derive(
    reads: Sequence[Tensor], product: Tensor, args: Mapping[str, Any]
) -> dict[str, list[int]]:
    """Compute the derived arguments of a Matmul.

    Parameters
    ----------
    reads : sequence of Tensor
        Its two operands.
    product : Tensor
    args : mapping
        Bare values of its arguments.

    Raises
    ------
    Misfit
        The tensors do not fit together.
    """
    left, right = reads
    _, m, n, k = matmul_sizes(
        left.shape,
        right.shape,
        transpose_left=args["TransposeInput"],
        transpose_right=args["TransposeOther"],
    )
    steps = left.box.strides[-1], product.box.strides[-1], right.box.strides[-1]
    return {
        "InputDimNC": _leading(left),
        "OtherDimNC": _leading(right),
        "ShapeMNK": [m, n, k],
        "StridesACDB": [steps[0], steps[1], steps[1], steps[2]],
    }


def _leading(tensor: Tensor) -> list[int]:
    """Return the first two sizes of a shape that is padded to four dimensions."""
    four = (1,) * (4 - len(tensor.shape)) + tensor.shape
    return list(four[:2])
