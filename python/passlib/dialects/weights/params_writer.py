"""Writer of MXNet's binary list of arrays, byte for byte as MXNet 1.9.1 writes it.

The layout is described in `passlib.dialects.weights.ndarray_list`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import Context, cpu
from passlib.arrays.storage import ROW_SPARSE, Array, Sparse
from passlib.dialects.weights.ndarray_list import LIST_MAGIC, V2_MAGIC, V3_MAGIC
from passlib.errors import UnsupportedError
from passlib.files.regular import replacing, written_from


def write_list(
    path: str | os.PathLike[str],
    arrays: Sequence[Array],
    names: Sequence[str] = (),
    *,
    contexts: Sequence[Context] | None = None,
    np_shape: bool | None = None,
) -> None:
    """Write arrays as ``mx.nd.save`` does; a failure leaves an existing file unchanged.

    Parameters
    ----------
    path : path-like
    arrays : sequence of numpy.ndarray or Sparse
        Of any memory order.
    names : sequence of str
        One for each array, or none.
    contexts : sequence of Context, optional
        The device to record for each array; ``cpu(0)`` by default.
    np_shape : bool, optional
        Whether to write version 3, which MXNet 1.9.1 writes and reads only while its NumPy
        shapes are enabled. By default only if there is a 0-d array, for which version 2 has no
        form that MXNet can read.

    Raises
    ------
    UnsupportedError
        An element type that MXNet lacks, a 0-d array in version 2, or a sparse one in version 3.
    ValueError
        A name that cannot be written, or the wrong number of names.
    """
    if names and len(names) != len(arrays):
        raise ValueError(f"{len(names)} names for {len(arrays)} arrays")
    encoded = [_encode(name) for name in names]
    labels = [repr(name) for name in names] or [f"number {i}" for i in range(len(arrays))]
    version3 = any(not array.shape for array in arrays) if np_shape is None else np_shape
    headers = [
        _header(array, f"array {label}", contexts[i] if contexts else cpu(), version3)
        for i, (array, label) in enumerate(zip(arrays, labels, strict=True))
    ]
    with written_from(arrays), replacing(path) as temporary, temporary.open("wb") as file:
        file.write(struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays)))
        for header, array in zip(headers, arrays, strict=True):
            file.write(header)
            for part in _parts(array):
                _write_elements(file, part)
        file.write(struct.pack("<Q", len(encoded)))
        for name in encoded:
            file.write(struct.pack("<Q", len(name)) + name)


def _encode(name: str) -> bytes:
    if "\0" in name:
        raise ValueError(
            f"the name {name!r} contains a zero byte, at which MXNet would truncate it"
        )
    return name.encode("utf-8")


def _header(array: Array, what: str, context: Context, version3: bool) -> bytes:
    sparse = isinstance(array, Sparse)
    if version3 and sparse:
        raise UnsupportedError(
            f"{what} is sparse, and the file would be in NumPy-shape form (version 3), which "
            "holds dense arrays only; save sparse and 0-d arrays in separate files"
        )
    if not version3 and not array.shape:
        raise UnsupportedError(
            f"{what} is 0-d, which MXNet can read back only from NumPy-shape form: leave "
            "np_shape unset, or reshape the array to (1,)"
        )
    magic = V3_MAGIC if version3 else V2_MAGIC
    device = struct.pack("<ii", context.device_typeid, context.device_id)
    if not isinstance(array, Sparse):
        stype = struct.pack("<Ii", magic, 0)
        return stype + _shape(array.shape) + device + _code(array.dtype, what)
    stype = struct.pack("<Ii", magic, 1 if array.stype == ROW_SPARSE else 2)
    shapes = _shape(array.data.shape) + _shape(array.shape)
    header = stype + shapes + device + _code(array.data.dtype, what)
    for part in list(_parts(array))[1:]:
        header += _code(part.dtype, what) + _shape(part.shape)
    return header


def _parts(array: Array) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the arrays of a record in the order of the file."""
    if not isinstance(array, Sparse):
        yield array
        return
    yield array.data
    if array.indptr is not None:
        yield array.indptr
    yield array.indices


def _code(dtype: np.dtype[Any], what: str) -> bytes:
    try:
        return struct.pack("<i", dtypes.code(dtype))
    except UnsupportedError as error:
        raise UnsupportedError(f"{what}: {error}") from error


def _shape(shape: tuple[int, ...]) -> bytes:
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def _write_elements(file: BinaryIO, array: np.ndarray[Any, Any]) -> None:
    plain = np.asarray(array)
    if plain.dtype.byteorder == ">":
        plain = plain.astype(plain.dtype.newbyteorder("<"))
    # As bytes, since the buffer protocol has no format for bfloat16.
    file.write(np.ascontiguousarray(plain).reshape(-1).view(np.uint8).data)
