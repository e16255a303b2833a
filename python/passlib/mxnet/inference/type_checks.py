"""Element types that NumPy operators refuse when MXNet infers types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering.types import Value

_Admits = Callable[[np.dtype], bool]


def _is_real(dtype: np.dtype) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


_REAL: Final = ("floating-point numbers", _is_real)
_BITS: Final = ("integers and truth values", lambda dtype: dtype.kind in "iub")
_SOLVED: Final = ("any type but float16", lambda dtype: dtype != np.float16)
_TRUTH: Final = ("truth values", lambda dtype: dtype == np.bool_)
_PLACES: Final = ("int64 as places", lambda dtype: dtype == np.int64)

_ADMITTED: Final[dict[str, tuple[str, _Admits]]] = {
    **dict.fromkeys(("_npi_arctan2", "_npi_hypot"), _REAL),
    **{
        f"_npi_bitwise_{name}{scalar}": _BITS
        for name in ("and", "or", "xor")
        for scalar in ("", "_scalar")
    },
    **dict.fromkeys(("_npi_lcm", "_npi_lcm_scalar"), _BITS),
    **dict.fromkeys(("_npi_around", "_npi_solve", "_npi_tensorinv", "_npi_tensorsolve"), _SOLVED),
    "_npx_constraint_check": _TRUTH,
}
"""By operator: the element types that its inputs may have, in words and as a test."""

_SAME_TYPE: Final = (
    "_np_atleast_1d _np_atleast_2d _np_atleast_3d _np_dot _npi_average _npi_bitwise_and "
    "_npi_bitwise_or _npi_bitwise_xor _npi_column_stack _npi_concatenate _npi_dstack "
    "_npi_ediff1d _npi_equal _npi_greater _npi_greater_equal _npi_hstack _npi_lcm _npi_ldexp "
    "_npi_less _npi_less_equal _npi_matmul _npi_not_equal _npi_stack _npi_tensordot "
    "_npi_tensordot_int_axes _npi_vstack"
)
_EQUAL: Final = frozenset(_SAME_TYPE.split())
"""Operators whose inputs have one element type."""


class ElementTypeError(GraphError):
    """An operator does not take the element types of its inputs."""


def check_types(node: Node, inputs: Sequence[Value]) -> None:
    """Check the element types of a node's inputs, as far as they are known.

    Raises
    ------
    ElementTypeError
        The operator does not take one; the message names the node and the input.
    """
    words, admits = _ADMITTED.get(node.op, ("", None))
    for index, value in enumerate(inputs if admits is not None else ()):
        if value.dtype is not None and admits is not None and not admits(value.dtype):
            _refuse(node, index, value, words)
    if node.op == "_npi_insert_tensor" and inputs:
        dtype = inputs[-1].dtype
        if dtype is not None and not _PLACES[1](dtype):
            _refuse(node, len(inputs) - 1, inputs[-1], _PLACES[0])
    _check_equal(node, inputs)


def _check_equal(node: Node, inputs: Sequence[Value]) -> None:
    equal = list(range(len(inputs))) if node.op in _EQUAL else []
    if node.op == "_npi_boolean_mask_assign_tensor" and len(inputs) == 3:
        equal = [0, 2]
    known: np.dtype | None = None
    for index in equal:
        dtype = inputs[index].dtype
        # By identity: NumPy takes None for float64.
        if dtype is None:
            continue
        if known is None:
            known = dtype
        elif dtype != known:
            _refuse(node, index, inputs[index], f"one element type, here {known}")


def _refuse(node: Node, index: int, value: Value, words: str) -> None:
    message = (
        f"{blame(node)}: input {index} ({value.name!r}) is {value.dtype}, and the operator takes "
        f"{words}; insert Cast"
    )
    raise ElementTypeError(message)
