"""The storage type of an operator's result, where MXNet keeps that of sparse inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from passlib.arrays.sparse_array import BaseSparseNDArray

_OF_ZERO: Final = """
BlockGrad _copy abs arcsin arcsinh arctan arctanh cbrt ceil degrees expm1 fix floor log1p make_loss
negative radians relu rint round sign sin sinh sqrt square tan tanh trunc zeros_like
"""
"""Functions of single elements that are 0 at 0."""

_OF_EQUAL: Final = frozenset(("add_n", "elemwise_add", "elemwise_mul", "elemwise_sub"))
"""Operators that give arrays of a kind if all inputs are of that kind."""

_OF_CSR: Final = frozenset(("Concat", "slice"))


def kept_storage(operator: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> str | None:
    """Return the storage type of the result; None for a dense one.

    Parameters
    ----------
    operator : str
        Registered name.
    inputs : sequence of array
    attributes : mapping of str to object
    """
    kinds = {array.stype if isinstance(array, BaseSparseNDArray) else None for array in inputs}
    if operator == "dot" and inputs and getattr(inputs[0], "stype", "") == "csr":
        transposed = str(attributes.get("transpose_a", False)) in ("True", "1", "true")
        return "row_sparse" if transposed and len(kinds) == 2 else None
    if len(kinds) != 1:
        return None
    kind: str | None = kinds.pop()
    if operator == "clip":
        within = float(attributes["a_min"]) <= 0 <= float(attributes["a_max"])
        return kind if within else None
    if operator in _OF_ZERO.split() or operator in _OF_EQUAL:
        return kind
    return kind if operator in _OF_CSR and kind == "csr" else None
