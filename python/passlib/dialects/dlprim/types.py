"""Element types of DLPrimitives by their names in files, and what is known of a tensor."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes

__all__ = [
    "FLOAT",
    "LARGEST",
    "MAX_RANK",
    "NAMES",
    "Spec",
    "code",
    "file_name",
    "from_code",
    "numpy_type",
]

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
"""NumPy's name by the name in a file. ``double`` and ``uint32`` are printed, but not understood."""

FLOAT: Final = "float32"
MAX_RANK: Final = 8

LARGEST: Final = 2**62
"""Tensors have fewer elements than this, so that their bytes can be counted."""

_FILE_NAMES: Final = {"float32": "float", "float16": "half"}
_CODES: Final = {name: number for number, name in dtypes.NAMES.items()}


class Spec(NamedTuple):
    """Element type, by NumPy's name, and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Count the elements."""
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype} ({', '.join(map(str, self.shape))})"


def file_name(dtype: str) -> str | None:
    """Give the name that files write for NumPy's; None if the format has no such type."""
    name = _FILE_NAMES.get(dtype, dtype)
    return name if name in NAMES else None


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Give the NumPy type; that of bfloat16 needs the package ml_dtypes."""
    return dtypes.from_code(_CODES[dtype])


def code(dtype: str) -> int:
    """Give MXNet's number for a type, as ``__dtype__`` holds it."""
    return _CODES[dtype]


def from_code(number: int) -> str | None:
    """Give NumPy's name for MXNet's number; None if there is none."""
    return dtypes.NAMES.get(number)
