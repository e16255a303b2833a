"""Arguments of Matmul in files of May 2024, which follow from its tensors."""

from __future__ import annotations

from passlib.dialects.ark.shapes import matmul_sizes
from passlib.dialects.ark.tensors import Tensor

__all__ = ["derive"]


def derive(
    left: Tensor, right: Tensor, product: Tensor, *, transpose_left: bool, transpose_right: bool
) -> dict[str, list[int]]:
    """Compute the derived arguments of a Matmul.

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


def _leading(tensor: Tensor) -> list[int]:
    four = (1,) * (4 - len(tensor.shape)) + tensor.shape
    return list(four[:2])
