"""Element types of DLPrimitives by their names in files, and the type of a tensor."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes

NAMES: Final = MappingProxyType(
    {
        "float": "float32",
        "float32": "float32",
        "float16": "float16",
        "half": "float16",
        "bfloat16": "bfloat16",
        "int": "int32",
        "int32": "int32",
        "int8": "int8",
        "uint8": "uint8",
        "int16": "int16",
        "uint16": "uint16",
        "int64": "int64",
        "uint64": "uint64",
    }
)
"""NumPy's name by the name in a file. The original writes ``double`` and ``uint32``, but cannot
read them."""

FLOAT: Final = "float32"
MAX_RANK: Final = 8

LARGEST: Final = 2**62
"""Upper bound of the number of elements, so that the number of bytes fits 64 bits."""

_FILE_NAMES: Final = {"float32": "float", "float16": "half"}


class Spec(NamedTuple):
    """Element type, by NumPy's name, and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"


def file_name(dtype: str) -> str | None:
    """Return the name in files of a NumPy type; None if the format has no such type."""
    name = _FILE_NAMES.get(dtype, dtype)
    return name if name in NAMES else None


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type; bfloat16 needs the package ml_dtypes."""
    return dtypes.from_code(dtypes.CODES[dtype])


def code(dtype: str) -> int:
    """Return MXNet's number of a type, as in ``__dtype__``."""
    return dtypes.CODES[dtype]


def from_code(number: int) -> str | None:
    """Return the NumPy name of MXNet's number; None if there is none."""
    return dtypes.NAMES.get(number)
