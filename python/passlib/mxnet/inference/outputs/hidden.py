"""Types of hidden outputs that lowering omits because nothing can use them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.graph.node import Node
from passlib.lowering.types import TypeSpec

_INT32 = np.dtype(np.int32)
_DETERMINANTS = ("_linalg_det", "_linalg_slogdet")


def with_hidden(
    node: Node, inputs: Sequence[TypeSpec], specs: Sequence[TypeSpec]
) -> tuple[TypeSpec, ...]:
    """Fill in the hidden outputs of a node whose visible ones are known.

    The second output of ``sort``, ``topk`` and maximum pooling holds positions, as int32, in the
    shape of the result; the hidden outputs of the determinants hold the factorized matrix and
    its pivots.
    """
    filled = list(specs)
    if node.op in ("sort", "topk", "Pooling") and len(filled) == 2:
        if filled[1].shape is None and filled[1].dtype is None:
            filled[1] = TypeSpec(_INT32, filled[0].shape)
    elif node.op in _DETERMINANTS and inputs and filled[-2].shape is None:
        matrix = filled[-2] = inputs[0]
        if matrix.shape is not None:
            filled[-1] = TypeSpec(_INT32, matrix.shape[:-1])
    return tuple(filled)
