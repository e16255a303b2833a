"""Reader of NumPy's .npy form, for arrays in untrusted files.

Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Only the element
types of MXNet are read, bfloat16 as MXNet 2.0 writes it, and never a pickle.
"""

from __future__ import annotations

import ast
import re
import struct
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes
from passlib.errors import UnsupportedError
from passlib.files.source import Source

NPY_MAGIC: Final = b"\x93NUMPY"
_LONGEST_HEADER: Final = 10_000
_LARGE_NUMBER: Final = re.compile(r"\d{20,}")  # int of Python refuses very long ones
_SHOWN: Final = 80
"""Characters of a header's values that a message shows."""


class Header(NamedTuple):
    """The text that describes an array, and the offset of its data."""

    text: str
    data_offset: int


def read_header(source: Source, offset: int, what: str) -> Header:
    """Find the header and the data of an array.

    Parameters
    ----------
    source : Source
    offset : int
        Offset of the array in bytes.
    what : str
        Its name, for messages.

    Returns
    -------
    Header

    Raises
    ------
    FormatError
    """
    fixed = source.slice(offset, 10, f"the header of {what}")
    if not fixed.startswith(NPY_MAGIC):
        raise source.fail(offset, f"{what} is not in .npy form")
    version = fixed[6]
    if version == 1:
        start, length = offset + 10, struct.unpack_from("<H", fixed, 8)[0]
    elif version in (2, 3):
        start = offset + 12
        length = struct.unpack("<I", source.slice(offset + 8, 4, f"the header of {what}"))[0]
    else:
        raise source.fail(offset + 6, f"{what} is in .npy version {version}, not 1 to 3")
    if length > _LONGEST_HEADER:
        raise source.fail(offset + 8, f"{what} claims a header of {length} bytes")
    raw = source.slice(start, length, f"the header of {what}")
    return Header(raw.decode("utf-8" if version == 3 else "latin-1", "replace"), start + length)


def read_array(source: Source, offset: int, what: str) -> tuple[np.ndarray[Any, Any], int]:
    """Read one array.

    Parameters
    ----------
    source : Source
    offset : int
        Offset of the array in bytes.
    what : str
        Its name, for messages.

    Returns
    -------
    array : numpy.ndarray
        A view on the source where alignment and byte order permit.
    end : int
        Offset of the byte after its data.

    Raises
    ------
    FormatError
    """
    header = read_header(source, offset, what)
    try:
        large = _LARGE_NUMBER.search(header.text)
        if large is not None:
            raise ValueError(f"it has a number of {len(large[0])} digits, beyond 64 bits")
        fields = _fields(header.text)
        if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
            raise ValueError("its keys are not descr, fortran_order and shape")
        shape, fortran = fields["shape"], fields["fortran_order"]
        if not isinstance(shape, tuple) or not all(type(size) is int for size in shape):
            raise ValueError(f"its shape {_shown(shape)} is not a tuple of integers")
        if not isinstance(fortran, bool):
            raise ValueError(f"its fortran_order is {_shown(fortran)}")
        dtype = _dtype(fields["descr"])
    except (ValueError, TypeError) as error:
        raise source.fail(offset, f"the header of {what} is invalid: {error}") from error
    array = source.array(header.data_offset, dtype, shape, what, "F" if fortran else "C")
    end = header.data_offset + array.nbytes
    native = dtype.newbyteorder("=")
    return (array if dtype.isnative else array.astype(native)), end


def _fields(text: str) -> object:
    try:
        return ast.literal_eval(text.strip())
    # It reports the parser's own limits as RecursionError and MemoryError.
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{_shown(text)} is no dictionary of Python's") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _dtype(descr: object) -> np.dtype[Any]:
    if descr == [("bfloat16", "<u2")]:
        return dtypes.from_code(dtypes.BFLOAT16_CODE)
    if not isinstance(descr, str) or len(descr) != 3:
        raise ValueError(f"MXNet has no element type {_shown(descr)}")
    try:
        dtype = np.dtype(descr)
    except SyntaxError as error:  # NumPy reads what stands before a comma as Python
        raise ValueError(f"NumPy has no element type {_shown(descr)}") from error
    try:
        dtypes.code(dtype)
    except UnsupportedError as error:
        raise ValueError(str(error)) from error
    return dtype
