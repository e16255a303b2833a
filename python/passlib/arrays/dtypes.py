"""MXNet's codes of element types, and their NumPy types."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np

from passlib.errors import UnsupportedError
from passlib.files.optional import require

BFLOAT16_CODE: Final = 12

NAMES: Final = MappingProxyType(
    {
        0: "float32",
        1: "float64",
        2: "float16",
        3: "uint8",
        4: "int32",
        5: "int8",
        6: "int64",
        7: "bool",
        8: "int16",
        9: "uint16",
        10: "uint32",
        11: "uint64",
        BFLOAT16_CODE: "bfloat16",
    }
)
"""Names by code, as ABI version 11 and .params files use them.

MXNet 1.9.1 computes with 0 to 7 and 12; 8 to 11 exist since 2.0.
"""

CODES: Final = MappingProxyType({name: number for number, name in NAMES.items()})
"""Codes by name."""

_NATIVE: Final = {np.dtype(name): code for name, code in CODES.items() if name != "bfloat16"}
"""The same by type, since NumPy computes the name of a type slowly."""


def from_code(number: int) -> np.dtype[Any]:
    """Return the NumPy type of MXNet's code ``number``.

    Raises `UnsupportedError` if MXNet has no such code; `PasslibError` if the code is 12 and
    ``ml_dtypes`` is not installed.

    Parameters
    ----------
    number : int
        A key of `NAMES`.

    Returns
    -------
    numpy.dtype
        In native byte order; for code 12 the type of the package ``ml_dtypes``.
    """
    name = NAMES.get(number)
    if name is None:
        raise UnsupportedError(f"MXNet has no dtype with code {number}; the codes are 0 to 12")
    return as_dtype(name)


def code(dtype: object) -> int:
    """Return MXNet's code of an element type.

    Raises `UnsupportedError` if MXNet has no such type, e.g. complex numbers, text or Python
    objects.

    Parameters
    ----------
    dtype : dtype-like
        Anything that `as_dtype` accepts, in any byte order.
    """
    resolved = as_dtype(dtype)
    number = _NATIVE.get(resolved)
    if number is None:
        number = CODES.get(resolved.name)
    if number is None:
        known = ", ".join(NAMES.values())
        raise UnsupportedError(f"MXNet has no dtype for {resolved}; its types are {known}")
    return number


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy type of anything that denotes one, ``"bfloat16"`` included.

    Raises `PasslibError` if the type is bfloat16 and ``ml_dtypes`` is not installed; `TypeError` if
    the argument does not denote a type.

    Parameters
    ----------
    dtype : dtype-like
        Anything that `numpy.dtype` accepts, the name ``"bfloat16"``, or the record type
        ``[("bfloat16", "<u2")]`` that MXNet's own Python uses for bfloat16.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return _bfloat16()
    resolved: np.dtype[Any] = np.dtype(dtype)
    if resolved.names == ("bfloat16",) and resolved.itemsize == 2:
        return _bfloat16()
    return resolved


def _bfloat16() -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(require("ml_dtypes", extra="bfloat16").bfloat16)
    return dtype
