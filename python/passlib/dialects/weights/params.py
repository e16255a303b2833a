"""Reader of MXNet's parameter files of any form."""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Final, TypeVar

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import DEVICE_TYPES, Context, cpu
from passlib.arrays.sparse_array import CSR, ROW_SPARSE, Array, Sparse
from passlib.dialects.weights.npz import NPY_MAGIC, ZIP_MAGIC, read_array, read_npz
from passlib.errors import FormatError, UnsupportedError, listed
from passlib.files.regular import memory_named, replacing, written_from
from passlib.files.source import Source

ARG: Final = "arg:"
AUX: Final = "aux:"

_T = TypeVar("_T")


def bare_name(key: str) -> str:
    """Return a name without the prefix ``arg:`` or ``aux:``, if it has one."""
    return key[len(ARG) :] if key.startswith((ARG, AUX)) else key


def split_names(
    content: Mapping[str, _T], where: str, auxiliary: Collection[str] | None = None
) -> tuple[dict[str, _T], dict[str, _T]]:
    """Sort the content of a weight file into arguments and auxiliary states.

    ``content``: by name, with ``arg:`` and ``aux:``. ``where``: the file, for messages.
    ``auxiliary``: the symbol's auxiliary states, which classify names without prefix. Raises
    `FormatError` if a name has no prefix and ``auxiliary`` was not given, or a name occurs twice.

    Returns
    -------
    args, aux : dict
        Without the prefixes. As in MXNet, names with another prefix (``foo:x``) are dropped.
    """
    args: dict[str, _T] = {}
    aux: dict[str, _T] = {}
    for key, value in content.items():
        if key.startswith((ARG, AUX)):
            kind, name = key[: len(ARG)], key[len(ARG) :]
        elif ":" in key and auxiliary is None:
            continue
        elif auxiliary is None:
            raise FormatError(
                f"{where}: the name {key!r} begins with neither {ARG!r} nor {AUX!r}, so it is "
                "unknown whether it is an argument or an auxiliary state; read the file with "
                "passlib.nd.load, or the whole model with passlib.load, which asks the symbol"
            )
        else:
            kind, name = (AUX if key in auxiliary else ARG), key
        target = args if kind == ARG else aux
        if name in target:
            raise FormatError(f"{where}: {name!r} is in the file twice, with a prefix and without")
        target[name] = value
    twice = args.keys() & aux.keys() if auxiliary is not None else ()
    if twice:
        raise FormatError(
            f"{where}: {listed(sorted(twice))} is in the file twice, as an argument and as an "
            "auxiliary state; read both with passlib.nd.load, and save the right one"
        )
    return args, aux


def join_names(args: Mapping[str, _T], aux: Mapping[str, _T]) -> dict[str, _T]:
    """Add the prefixes, arguments first: the reverse of `split_names`."""
    return {
        **{ARG + name: value for name, value in args.items()},
        **{AUX + name: value for name, value in aux.items()},
    }


LIST_MAGIC: Final = 0x112
V1_MAGIC: Final = 0xF993FAC8
V2_MAGIC: Final = 0xF993FAC9
V3_MAGIC: Final = 0xF993FACA

_STORAGE: Final = {0: "default", 1: ROW_SPARSE, 2: CSR}
_INDEX_ARRAYS: Final = {"default": 0, ROW_SPARSE: 1, CSR: 2}
_SMALLEST_RECORD: Final = 4
_MOST_DIMENSIONS: Final = 32


def read_list(source: Source) -> tuple[list[Array], list[str], int]:
    """Read a whole file.

    ``source``: bytes after the names are ignored, as MXNet does. Raises `FormatError` if the file
    is damaged; the message has the byte offset. Nothing is allocated for a size that the file
    cannot hold.

    Returns
    -------
    arrays : list of numpy.ndarray or Sparse
        Views on the source where alignment permits.
    names : list of str
        One for each array, or none.
    end : int
        Offset of the byte after the names.
    """
    reader = _Reader(source)
    start = reader.offset
    if reader.unsigned("the magic number") != LIST_MAGIC:
        raise source.fail(start, "this is no array list of MXNet: it does not begin with 0x112")
    reader.unsigned("the reserved word")
    count = reader.count("arrays", _SMALLEST_RECORD)
    arrays = [reader.record(f"array {index}") for index in range(count)]
    start = reader.offset
    named = reader.count("names", 8)
    if named not in (0, count):
        raise source.fail(start, f"{named} names for {count} arrays")
    names = [reader.name(index) for index in range(named)]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise source.fail(start, f"two arrays have the name {name!r}")
        seen.add(name)
    return arrays, names, reader.offset


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.offset = 0

    def record(self, what: str) -> Array:
        magic = self._unpack("<I", f"the magic number of {what}")[0]
        if magic in (V2_MAGIC, V3_MAGIC):
            return self._current(what, scalars=magic == V3_MAGIC)
        start = self.offset - 4
        if magic == V1_MAGIC:
            shape = self._shape(what)
        elif magic <= _MOST_DIMENSIONS:
            shape = self._unpack(f"<{magic}I", f"the shape of {what}")
        else:
            raise self.source.fail(
                start, f"{what} begins with 0x{magic:08X}, as in no known version"
            )
        if not shape:
            raise self._shapeless(start, what)
        return self._data(self._dtype(what), shape, what)

    def _current(self, what: str, *, scalars: bool) -> Array:
        start = self.offset
        number = self._unpack("<i", f"the storage type of {what}")[0]
        # An array without a shape is written with the storage type "undefined".
        stype = _STORAGE.get(number) if number != -1 else "default"
        if stype is None:
            raise self.source.fail(start, f"{what} has storage type {number}, not 0, 1 or 2")
        if scalars and stype != "default":
            raise self.source.fail(start, f"{what} is {stype} in version 3, which is dense only")
        stored = self._shape(f"the data of {what}") if stype != "default" else ()
        start = self.offset
        shape = self._shape(what, unknown=scalars)
        if shape is None or (not shape and not scalars and not self._scalar_follows()):
            raise self._shapeless(start, what)
        dtype = self._dtype(what)
        if stype == "default":
            return self._data(dtype, shape, what)
        labels = [f"index array {i} of {what}" for i in range(_INDEX_ARRAYS[stype])]
        parts = [(self._element_type(label), self._shape(label)) for label in labels]
        # MXNet saves an array that is still being computed with its former number of values. The
        # number of indices is always right, and its reader uses that.
        stored = (*parts[-1][1][:1], *stored[1:])
        data = self._data(dtype, stored, f"the data of {what}")
        indices = [self._data(*part, label) for part, label in zip(parts, labels, strict=True)]
        sparse = Sparse(stype, tuple(shape), data, indices[-1], *indices[:-1])
        try:
            sparse.check()
        except ValueError as error:
            raise self.source.fail(
                start, f"{what} is not a valid {stype} array: {error}"
            ) from error
        return sparse

    def _scalar_follows(self) -> bool:
        """Whether a record of version 2 with 0 dimensions is a 0-d array, not one without shape.

        Outside its NumPy mode MXNet writes both alike, the former followed by device, type and
        data, and cannot read it back. The latter is followed by another record or the number of
        names, neither of which looks like a device and a type.
        """
        if self.source.size - self.offset < 12:
            return False
        device, number, dtype = struct.unpack_from("<iii", self.source.data, self.offset)
        return device in DEVICE_TYPES.values() and 0 <= number < 1 << 16 and dtype in dtypes.NAMES

    def _shapeless(self, start: int, what: str) -> FormatError:
        return self.source.fail(
            start, f"{what} has no shape: it was saved before it was initialised"
        )

    def _shape(self, what: str, *, unknown: bool = False) -> Any:
        start = self.offset
        dimensions = self._unpack("<i", f"the number of dimensions of {what}")[0]
        if dimensions == -1 and unknown:
            return None
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise self.source.fail(
                start, f"{what} claims {dimensions} dimensions, not 0 to {_MOST_DIMENSIONS}"
            )
        shape = self._unpack(f"<{dimensions}q", f"the shape of {what}")
        if unknown and any(size < 0 for size in shape):
            return None
        return shape

    def _dtype(self, what: str) -> np.dtype[Any]:
        # The device is where the array was when it was saved.
        self._unpack("<ii", f"the device of {what}")
        return self._element_type(what)

    def _element_type(self, what: str) -> np.dtype[Any]:
        start = self.offset
        number = self._unpack("<i", f"the dtype of {what}")[0]
        if number not in dtypes.NAMES:
            raise self.source.fail(start, f"{what} has dtype {number}; MXNet's are 0 to 12")
        return dtypes.from_code(number)

    def _data(self, dtype: np.dtype[Any], shape: Any, what: str) -> np.ndarray[Any, Any]:
        array = self.source.array(self.offset, dtype, shape, what)
        self.offset += array.nbytes
        return array

    def name(self, index: int) -> str:
        length = self.count("bytes", 1, of=f"name {index}")
        raw = self.source.slice(self.offset, length, f"name {index}")
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.source.fail(
                self.offset + error.start, f"name {index} is not UTF-8"
            ) from error
        if "\0" in name:
            raise self.source.fail(
                self.offset + raw.index(0),
                f"name {index} has a NUL character in it, at which MXNet would truncate it",
            )
        self.offset += length
        return name

    def count(self, items: str, smallest: int, of: str = "the file") -> int:
        start = self.offset
        count = self.unsigned(f"the number of {items} of {of}")
        if count * smallest > self.source.size - self.offset:
            raise self.source.fail(
                start,
                f"{of} claims {count} {items}, more than the {self.source.size - self.offset} "
                "bytes that follow can hold; it is truncated or damaged",
            )
        return count

    def unsigned(self, what: str) -> int:
        return int(self._unpack("<Q", what)[0])

    def _unpack(self, layout: str, what: str) -> Any:
        raw = self.source.slice(self.offset, struct.calcsize(layout), what)
        self.offset += len(raw)
        return struct.unpack(layout, raw)


def read(path: str | os.PathLike[str]) -> dict[str, Array] | list[Array]:
    """Read a file of arrays; its content determines the form.

    ``path``: a list of arrays of MXNet up to 1.9, or the .npz or .npy of 2.0. Result: a list where
    the file has no names, as also for an empty file of MXNet up to 1.9. Arrays of a file of 1 MB or
    more are mapped; writing to them does not change it. Raises `FormatError` if the file is
    damaged; the message has the byte offset; `OSError` if the file cannot be read.
    """
    source = Source.open(path)
    with memory_named(path):
        return read_source(source)


def read_source(source: Source) -> dict[str, Array] | list[Array]:
    """Read arrays from bytes, like `read`.

    Raises
    ------
    FormatError
    """
    start = bytes(source.data[:8])
    if start.startswith(ZIP_MAGIC):
        return read_npz(source)
    if start.startswith(NPY_MAGIC):
        return [read_array(source, 0, "the array")[0]]
    if start != LIST_MAGIC.to_bytes(8, "little"):
        raise source.fail(
            0,
            "this is no parameter file of MXNet: it begins with "
            f"{start.hex(' ') or 'nothing'}, not like a list of arrays (12 01), an .npz (50 4b) "
            "or an .npy (93 4e)",
        )
    arrays, names, _ = read_list(source)
    return dict(zip(names, arrays, strict=True)) if names else arrays


def write_list(
    path: str | os.PathLike[str],
    arrays: Sequence[Array],
    names: Sequence[str] = (),
    *,
    contexts: Sequence[Context] | None = None,
    np_shape: bool | None = None,
) -> None:
    """Write arrays as ``mx.nd.save`` does; a failure leaves an existing file unchanged.

    Raises `UnsupportedError` for an element type that MXNet lacks, a 0-d array in version 2, or a
    sparse one in version 3; `ValueError` for a name that cannot be written, or the wrong number of
    names.

    Parameters
    ----------
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
