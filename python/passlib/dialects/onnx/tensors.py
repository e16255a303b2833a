"""Tensors of ONNX as NumPy arrays, and back."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.errors import FormatError, UnsupportedError
from passlib.files.optional import require

ELEMENT_TYPES: Final = MappingProxyType(
    {
        1: "float32",
        2: "uint8",
        3: "int8",
        4: "uint16",
        5: "int16",
        6: "int32",
        7: "int64",
        9: "bool",
        10: "float16",
        11: "float64",
        12: "uint32",
        13: "uint64",
        16: "bfloat16",
    }
)
"""The element types of ``TensorProto.DataType`` that passes see as arrays.

Left out are strings, complex numbers, types smaller than a byte, and types without a code in the
extension ABI.
"""

CODES: Final = MappingProxyType({name: code for code, name in ELEMENT_TYPES.items()})
"""The numbers of `ELEMENT_TYPES` by name."""

PACKED: Final = MappingProxyType({"uint4": 21, "int4": 22})
"""The numbers of the types of ``ml_dtypes`` with two elements in a byte, by name.

Weights that a pass made may have them. Those of files stay in the file.
"""

_TYPED_FIELDS: Final = {
    "float32": "float_data",
    "float64": "double_data",
    "int64": "int64_data",
    "uint32": "uint64_data",
    "uint64": "uint64_data",
}
"""The field of values that are not raw; ``int32_data`` for all other types."""

_LARGEST = 1 << 58
"""Element counts above this one are refused."""

_MOST_DIMENSIONS = 32
"""The limit of NumPy 1."""


def code_of(dtype: np.dtype[Any], what: str) -> int:
    """Return ONNX's number for an element type.

    Raises `UnsupportedError` if passlib cannot write tensors of this type; the message begins with
    ``what``.
    """
    code = CODES.get(dtype.name) or PACKED.get(dtype.name)
    if code is None:
        raise UnsupportedError(f"{what}: ONNX has no tensors of {dtype}")
    return code


def kind_of(tensor: Any) -> str:
    """Return ONNX's name for the element type of a tensor, in lower case."""
    names = require("onnx", extra="onnx").TensorProto.DataType
    return str(names.Name(tensor.data_type)).lower() if tensor.data_type in names.values() else "?"


def element_count(dims: Sequence[int], place: str) -> int:
    """Return the number of elements of a tensor with given dimensions.

    Raises `FormatError` if a dimension is negative, or there are more elements than any memory can
    hold.
    """
    if dims and min(dims) < 0:
        raise FormatError(f"{place}: a dimension of {dims} is negative")
    count = math.prod(dims)
    if len(dims) > _MOST_DIMENSIONS or (count or math.prod(filter(None, dims))) > _LARGEST:
        raise FormatError(f"{place}: dimensions {dims} are too large for any memory")
    return count


def to_array(tensor: Any, place: str, data: Any = None) -> np.ndarray[Any, Any] | None:
    """Return the elements of a tensor that is not external.

    None for element types outside `ELEMENT_TYPES`, and for segments of larger tensors. ``place``:
    for messages. ``data``: its raw data, if it was taken out of the message; the array is a view of
    it. Raises `FormatError` if there are too few or too many elements.
    """
    shape: list[int] = tensor.dims[:]
    count = element_count(shape, place)
    code = tensor.data_type
    if code not in ELEMENT_TYPES or tensor.HasField("segment"):
        return None
    dtype = _dtype_of(code)
    if data is None and tensor.HasField("raw_data"):
        data = tensor.raw_data
    if data is not None:
        if len(data) != count * dtype.itemsize:
            raise FormatError(
                f"{place}: raw data of {len(data)} bytes, but dimensions {shape} of {dtype.name} "
                f"take {count * dtype.itemsize}"
            )
        if sys.byteorder == "big":
            return np.frombuffer(data, dtype.newbyteorder("<")).astype(dtype).reshape(shape)
        array = np.frombuffer(data, dtype)
        return array if len(shape) == 1 else array.reshape(shape)
    name = ELEMENT_TYPES[code]
    field = _TYPED_FIELDS.get(name, "int32_data")
    values = getattr(tensor, field)
    if len(values) != count:
        raise FormatError(
            f"{place}: {len(values)} elements in {field}, but dimensions {shape} require {count}"
        )
    wide = np.dtype({"int32_data": np.int32, "uint64_data": np.uint64}.get(field, dtype))
    array = np.array(values, wide)
    if name in ("float16", "bfloat16"):
        array = array.astype(np.uint16).view(dtype)
    return array.astype(dtype, copy=False).reshape(shape)


@cache
def _dtype_of(code: int) -> np.dtype[Any]:
    return dtypes.as_dtype(ELEMENT_TYPES[code])


def to_bytes(array: np.ndarray[Any, Any]) -> bytes:
    """Return the elements of an array as raw data: little endian, in C order."""
    return np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def same_array(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays have equal types, shapes and bits."""
    return not differing([(left, right)])


def differing(pairs: Sequence[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]) -> set[int]:
    """Return the positions of the pairs of arrays that differ in type, shape or any bit.

    Pairs that share their memory are not compared bit by bit.
    """
    alike = [
        position
        for position, (left, right) in enumerate(pairs)
        if left.dtype == right.dtype and left.shape == right.shape
    ]
    found = set(range(len(pairs))).difference(alike)
    contiguous = (
        (np.ascontiguousarray(left), np.ascontiguousarray(right))
        for left, right in (pairs[position] for position in alike)
    )
    found.update(alike[number] for number in _core.differing_arrays(contiguous))
    return found
