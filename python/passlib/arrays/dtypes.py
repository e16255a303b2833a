"""Element types and MXNet's codes for them; types and shapes as callers state them, by name."""

from __future__ import annotations

import operator
from collections.abc import Mapping
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

WITHOUT_CODE: Final = frozenset(("int4", "uint4"))
"""Names of element types of ``ml_dtypes`` that weights may have and libraries do not see."""

_NATIVE: Final = {np.dtype(name): code for name, code in CODES.items() if name != "bfloat16"}
"""The same by type, since NumPy computes the name of a type slowly."""


def from_code(number: int) -> np.dtype[Any]:
    """Return the NumPy type of a code, in native byte order; bfloat16 is that of ``ml_dtypes``.

    Raises `UnsupportedError` if MXNet has no such code; `PasslibError` if ``ml_dtypes`` is needed
    and not installed.
    """
    name = NAMES.get(number)
    if name is None:
        raise UnsupportedError(f"MXNet has no dtype with code {number}; the codes are 0 to 12")
    return as_dtype(name)


def code(dtype: object) -> int:
    """Return MXNet's code of an element type, in any byte order and as `as_dtype` accepts it.

    Raises `UnsupportedError` if MXNet has no such type, e.g. complex numbers or text.
    """
    resolved = as_dtype(dtype)
    number = code_or_none(resolved)
    if number is None:
        known = ", ".join(NAMES.values())
        raise UnsupportedError(f"MXNet has no dtype for {resolved}; its types are {known}")
    return number


def code_or_none(dtype: np.dtype[Any]) -> int | None:
    """Return MXNet's code of an element type; None if it has none."""
    number = _NATIVE.get(dtype)
    return CODES.get(dtype.name) if number is None else number


def as_dtype(dtype: Any) -> np.dtype[Any]:
    """Return the NumPy type of anything that denotes one.

    Accepts what `numpy.dtype` does, ``"bfloat16"``, and ``[("bfloat16", "<u2")]``, the record type
    that MXNet's own Python uses. Raises `TypeError` if the argument does not denote a type;
    `PasslibError` if the type is bfloat16 and ``ml_dtypes`` is not installed.
    """
    if isinstance(dtype, str) and dtype == "bfloat16":
        return _bfloat16()
    resolved: np.dtype[Any] = np.dtype(dtype)
    if resolved.names == ("bfloat16",) and resolved.itemsize == 2:
        return _bfloat16()
    return resolved


def without_code(name: str) -> np.dtype[Any]:
    """Return the NumPy type of one of `WITHOUT_CODE`.

    Raises `PasslibError` if ``ml_dtypes`` is not installed.
    """
    dtype: np.dtype[Any] = np.dtype(getattr(require("ml_dtypes", extra="bfloat16"), name))
    return dtype


def _bfloat16() -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(require("ml_dtypes", extra="bfloat16").bfloat16)
    return dtype


_EXAMPLE = "(1, 3, 224, 224)"


def as_mapping(what: str, given: Any, example: str, hint: str = "") -> Mapping[str, Any]:
    """Return an argument that is a mapping; None is an empty one.

    Raises `TypeError` if it is something else. The message names ``what`` and shows the right form:
    ``example`` under the name ``hint``.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{what} is of type {type(given).__name__}, but must be a dictionary by name, such as "
            f"{{{hint or 'data'!r}: {example}}}"
        )
    return given


def as_shape(what: str, given: Any) -> tuple[int | None, ...]:
    """Return a sequence of whole numbers as a tuple, None for an open size.

    Raises `TypeError` for anything else.
    """
    try:
        if isinstance(given, (str, bytes)):
            raise TypeError
        return tuple(None if size is None else operator.index(size) for size in given)
    except TypeError:
        raise TypeError(
            f"{what} is {given!r}, but must be a tuple of whole numbers, such as {_EXAMPLE}"
        ) from None


def as_shapes(what: str, given: Any, hint: str = "") -> dict[str, tuple[int | None, ...]]:
    """Return shapes by name.

    Raises `TypeError` if ``given`` is not a mapping, or a shape is not a sequence of whole numbers.
    The message names ``what``, and shows the name ``hint`` as an example.
    """
    shapes = as_mapping(what, given, _EXAMPLE, hint)
    return {name: as_shape(f"{what}: the shape of {name!r}", s) for name, s in shapes.items()}


def as_types(what: str, given: Any, hint: str = "") -> dict[str, np.dtype[Any]]:
    """Return element types by name.

    Raises `TypeError` if ``given`` is not a mapping, or a value does not denote an element type.
    """
    types = as_mapping(what, given, "'float32'", hint)
    return {name: _as_type(what, name, kind) for name, kind in types.items()}


def _as_type(what: str, name: str, given: Any) -> np.dtype[Any]:
    try:
        return as_dtype(given)
    except TypeError:
        raise TypeError(
            f"{what}: the element type of {name!r} is {given!r}, which is not one; "
            f"there are {', '.join(NAMES.values())}"
        ) from None
