"""Values of inputs, as callers give them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.arrays.creation import array


def as_fed(given: Mapping[str, Any], others: Collection[str]) -> dict[str, Any]:
    """Return values as sessions take them.

    Parameters
    ----------
    given : mapping of str to object
    others : collection of str
        Inputs that are not arrays of numbers, but strings, sequences, maps or optional values.

    Returns
    -------
    dict of str to object
        Arrays; lists, dictionaries and None where ``others`` permits it.

    Raises
    ------
    TypeError
        A value is not an array of numbers; the message names its input.
    """
    return {n: _plain(v) if n in others else _as_array(n, v) for n, v in given.items()}


def _plain(value: Any) -> Any:
    """Return a value of strings, sequences or maps with NumPy's arrays in it, and no other ones."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(item, str) for item in value):
            return np.array(value, object)
        return [_plain(item) for item in value]
    return value


def _as_array(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic, BaseSparseNDArray)):
        return value
    reason = ""
    if value is not None:  # which NumPy takes for NaN
        try:
            return array(value)
        except (TypeError, ValueError) as error:
            reason = f": {error}"
    raise TypeError(
        f"the value of {name!r} is of type {type(value).__name__}, but must be an array, or nested "
        f"lists of numbers, all of one length at each depth{reason}"
    )
