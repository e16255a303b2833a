"""Element types of variables of which none is known while only shapes are wanted.

MXNet infers shapes whatever the types are. Lowering wants types that the operators take: most take
float32, some only integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np

from passlib.graph.node import Node
from passlib.mxnet.inference.quantized_rules import QUANTIZED, bounds_of
from passlib.mxnet.lowering.real_arithmetic import is_real

_INTEGERS: Final = frozenset(
    (
        "_npi_bincount",
        "_npi_bitwise_and",
        "_npi_bitwise_and_scalar",
        "_npi_bitwise_not",
        "_npi_bitwise_or",
        "_npi_bitwise_or_scalar",
        "_npi_bitwise_xor",
        "_npi_bitwise_xor_scalar",
        "_npi_lcm",
        "_npi_lcm_scalar",
    )
)
_INT8, _UINT8, _INT32 = map(np.dtype, (np.int8, np.uint8, np.int32))


def default_types(nodes: Iterable[Node], default: np.dtype) -> Callable[[Node], np.dtype]:
    """Return what element type each variable has where nothing else says it.

    Parameters
    ----------
    nodes : iterable of Node
    default : numpy.dtype
        The type for operators that take any, or real numbers.
    """
    found: dict[Node, np.dtype] = {}
    whole = _INT32 if is_real(default) else default
    for node in nodes:
        for index, entry in enumerate(node.inputs):
            if entry.node.is_variable:
                special = whole if node.op in _INTEGERS else _quantized(node, index)
                if special is not None:
                    found.setdefault(entry.node, special)
    return lambda node: found.get(node, default)


def _quantized(node: Node, index: int) -> np.dtype | None:
    """Return the type of an input of an operator on bytes, which has real bounds next to them."""
    if node.op == "_contrib_requantize":
        return _INT32 if index == 0 else None
    if node.op not in QUANTIZED:
        return None
    if node.op == "_contrib_quantized_conv" and index == 0:
        return _UINT8
    real = bounds_of(node)
    return None if index >= len(real) or real[index] else _INT8
