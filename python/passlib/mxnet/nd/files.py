"""Reading and writing arrays in MXNet's file formats."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import cpu
from passlib.arrays.sparse_array import Array, BaseSparseNDArray, Sparse
from passlib.arrays.views import AnyArray, from_parts, to_parts
from passlib.dialects.weights import params
from passlib.dialects.weights.files import load_parts
from passlib.dialects.weights.npz import write_npz
from passlib.dialects.weights.params import write_list
from passlib.errors import UnsupportedError
from passlib.files.optional import require
from passlib.files.regular import replacing, written_from
from passlib.files.source import Source


def load_weights(path: str | os.PathLike[str]) -> dict[str, AnyArray]:
    """Read named arrays from a .params, .npz or .safetensors file.

    Parameters
    ----------
    path : path-like
        The content determines the format, not the suffix.

    Returns
    -------
    dict of str to array
        Files of 1 MB or more are mapped, not read; writing to an array does not modify them.

    Raises
    ------
    FormatError
        The file is damaged, of no known format, or has no names.
    PasslibError
        A .safetensors file, and the package ``safetensors`` is not installed.
    OSError
        The file cannot be read.
    """
    return {name: from_parts(parts) for name, parts in load_parts(path).items()}


def save_weights(path: str | os.PathLike[str], mapping: Mapping[str, Any]) -> None:
    """Write named arrays in the format of the suffix; a failure leaves an old file unchanged.

    Parameters
    ----------
    path : path-like
        Ending in ``.params``, ``.npz`` or ``.safetensors``.

    Raises
    ------
    ValueError
        The suffix is none of these.
    UnsupportedError
        The format cannot represent one of the arrays.
    PasslibError
        The suffix is ``.safetensors`` and the package ``safetensors`` is not installed.
    """
    arrays = {name: to_parts(array) for name, array in mapping.items()}
    suffix = Path(path).suffix
    if suffix == ".params":
        write_list(path, list(arrays.values()), list(arrays))
    elif suffix == ".npz":
        write_npz(path, arrays)
    elif suffix == ".safetensors":
        _write_safetensors(path, arrays)
    else:
        raise ValueError(
            f"{os.fspath(path)!r} has no known suffix; use .params, .npz or .safetensors"
        )


def _write_safetensors(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    writer = require("safetensors.numpy", extra="safetensors")
    plain: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        if isinstance(array, Sparse):
            raise UnsupportedError(
                f"array {name!r} is {array.stype}, and .safetensors holds dense arrays only; "
                "convert it with tostype('default') or save as .params"
            )
        try:
            dtypes.code(array.dtype)
        except UnsupportedError as error:
            raise UnsupportedError(f"array {name!r}: {error}") from error
        # The package writes the memory of an array regardless of its strides.
        plain[name] = np.asarray(array, array.dtype.newbyteorder("="), order="C")
    with written_from(plain.values()), replacing(path) as temporary:
        writer.save_file(plain, temporary)


def save(
    fname: str | os.PathLike[str],
    data: AnyArray | Sequence[Any] | Mapping[str, Any],
    *,
    np_shape: bool | None = None,
) -> None:
    """Write arrays to a .params file, with the same bytes as MXNet 1.9.1.

    Parameters
    ----------
    fname : path-like
        Replaced as a whole; a failure leaves an existing file unchanged.
    data : array, sequence of arrays or mapping of str to array
        Arrays of passlib or NumPy.
    np_shape : bool, optional
        Whether to write the format that MXNet writes and reads only in NumPy shape mode
        (``mx.util.np_shape``). By default true if an array is 0-d, which the other format cannot
        represent.

    Raises
    ------
    UnsupportedError
        MXNet does not have an element type, or there are both 0-d and sparse arrays.
    TypeError
        A value is not an array, or a name is not a str.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as mx
    >>> with tempfile.NamedTemporaryFile(suffix=".params") as file:
    ...     mx.nd.save(file.name, {"w": mx.nd.ones((2,)), "b": mx.nd.zeros((1,))})
    ...     print(list(mx.nd.load(file.name)))
    ['w', 'b']
    """
    names: list[str] = []
    if isinstance(data, Mapping):
        names, arrays = list(data.keys()), list(data.values())
    elif isinstance(data, (np.ndarray, BaseSparseNDArray)):
        arrays = [data]
    elif isinstance(data, (list, tuple)):
        arrays = list(data)
    else:
        raise TypeError(
            f"data is of type {type(data).__name__}; save takes an array, a list of arrays or a "
            "dict of str to array"
        )
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"the name {name!r} is not a str")
    contexts = [getattr(array, "context", None) or cpu() for array in arrays]
    write_list(fname, [to_parts(a) for a in arrays], names, contexts=contexts, np_shape=np_shape)


def load(fname: str | os.PathLike[str]) -> dict[str, AnyArray] | list[AnyArray]:
    """Read arrays from a .params file of any version, or from the .npz and .npy of MXNet 2.0.

    Parameters
    ----------
    fname : path-like
        The content determines the format, not the name.

    Returns
    -------
    dict of str to array, or list of arrays
        A list if the arrays have no names. All are on ``cpu(0)``. Arrays of files of 1 MB or
        more are mapped, not read; writing to them does not modify the file.

    Raises
    ------
    FormatError
        The file is damaged; the message states the byte offset.
    OSError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as mx
    >>> with tempfile.NamedTemporaryFile(suffix=".params") as file:
    ...     mx.nd.save(file.name, {"w": mx.nd.ones((2, 3))})
    ...     print(mx.nd.load(file.name)["w"].shape)
    (2, 3)
    """
    return _wrap_all(params.read(fname))


def load_frombuffer(buf: bytes | bytearray | memoryview) -> dict[str, AnyArray] | list[AnyArray]:
    """Read arrays from a copy of bytes in memory, as `load` does from a file.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import passlib as mx
    >>> with tempfile.NamedTemporaryFile(suffix=".params") as file:
    ...     mx.nd.save(file.name, [mx.nd.ones((2, 3))])
    ...     content = pathlib.Path(file.name).read_bytes()
    >>> [array.shape for array in mx.nd.load_frombuffer(content)]
    [(2, 3)]
    """
    return _wrap_all(params.read_source(Source(bytearray(buf), "<buffer>")))


def _wrap_all(content: dict[str, Array] | list[Array]) -> dict[str, AnyArray] | list[AnyArray]:
    if isinstance(content, dict):
        return {name: from_parts(parts) for name, parts in content.items()}
    return [from_parts(parts) for parts in content]
