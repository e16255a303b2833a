"""Reader of MXNet's binary list of arrays, the form of .params files up to 1.9.

Layout, little-endian and without padding: ``u64 0x112, u64 0, u64 n``, n records, ``u64 m``
with m equal to n or 0, and m names, each ``u64 length`` and UTF-8 bytes. A record is one of

- version 2: ``u32 0xF993FAC9, i32 storage type``, for sparse the shape of the stored data, the
  shape, ``i32 device type, i32 device number, i32 dtype``, for sparse an ``i32 dtype`` and a shape
  for each index array, the data, the index arrays; a shape is ``i32 n`` and ``n * i64``;
- version 3: as version 2 with magic ``0xF993FACA``, dense only, and 0-d arrays have data;
- version 1: ``u32 0xF993FAC8``, shape, device, dtype, data;
- version 0: ``u32 n, n * u32`` as shape, device, dtype, data.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import DEVICE_TYPES
from passlib.arrays.storage import CSR, ROW_SPARSE, Array, Sparse
from passlib.errors import FormatError
from passlib.files.source import Source

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

    Parameters
    ----------
    source : Source
        Bytes after the names are ignored, as MXNet does.

    Returns
    -------
    arrays : list of numpy.ndarray or Sparse
        Views on the source where alignment permits.
    names : list of str
        One for each array, or none.
    end : int
        Offset of the byte after the names.

    Raises
    ------
    FormatError
        The file is damaged; the message has the byte offset. Nothing is allocated for a size
        that the file cannot hold.
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
                start,
                f"{what} claims {dimensions} dimensions, not 0 to {_MOST_DIMENSIONS}",
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
