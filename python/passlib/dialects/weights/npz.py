"""Reader of .npz archives as MXNet 2.0 uses them for parameters.

Each array is a stored member ``<name>.npy``. A sparse one is a folder of members that follows
SciPy: ``<name>/data.npy``, ``indices.npy``, ``indptr.npy`` (csr only), ``shape.npy`` and
``format.npy``, which holds ``csr`` or ``row_sparse``. MXNet 2.0 writes a damaged header to
``format.npy`` and ignores it when reading, as does this reader.
"""

from __future__ import annotations

import ast
import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.sparse_array import CSR, ROW_SPARSE, Array, Sparse
from passlib.errors import FormatError, UnsupportedError
from passlib.files.limits import current_limits
from passlib.files.regular import replacing, written_from
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

    ``offset``: offset of the array in bytes. ``what``: its name, for messages.

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

    ``offset``: offset of the array in bytes. ``what``: its name, for messages.

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


ZIP_MAGIC: Final = b"PK"
_SPARSE_MEMBERS: Final = {
    ROW_SPARSE: frozenset({"data", "indices", "shape", "format"}),
    CSR: frozenset({"data", "indices", "indptr", "shape", "format"}),
}
_ENCRYPTED: Final = 0x1
_LOCAL_HEADER: Final = 30
_MOST_DIMENSIONS: Final = 32
_BEST_RATIO: Final = 1032  # deflate cannot shrink further


def read_npz(source: Source) -> dict[str, Array]:
    """Read all arrays of an archive.

    Result: in the order of the archive. Stored members are views on the source where their
    alignment permits. Their checksums are not verified in a mapped file, since that would read all
    of it. Raises `FormatError` if the archive is damaged, its members overlap, or compressed ones
    unpack to more than `passlib.limits` permits.
    """
    try:
        with source.file() as file, zipfile.ZipFile(file) as archive:
            members = _open_members(source, archive)
    except FormatError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OSError,
        OverflowError,
        RuntimeError,
        ValueError,
    ) as error:
        raise FormatError(f"{source.name}: the .npz archive is damaged: {error}") from error
    return _arrays(members)


class _Member:
    """The bytes of one member: a range of the file, or unpacked."""

    def __init__(self, source: Source, offset: int, end: int, what: str) -> None:
        self.source = source
        self.offset = offset
        self.end = end
        self.what = what

    def array(self) -> np.ndarray[Any, Any]:
        array, end = read_array(self.source, self.offset, self.what)
        if end != self.end:
            raise self.source.fail(
                self.offset,
                f"{self.what} describes {end - self.offset} bytes, but has "
                f"{self.end - self.offset}",
            )
        return array

    def text(self) -> bytes:
        start = read_header(self.source, self.offset, self.what).data_offset
        return self.source.slice(start, self.end - start, self.what) if self.end > start else b""

    def integers(self) -> tuple[int, ...]:
        array = self.array()
        if array.ndim != 1 or array.dtype.kind not in "iu" or array.size > _MOST_DIMENSIONS:
            raise self.source.fail(self.offset, f"{self.what} does not hold a shape")
        return tuple(int(size) for size in array)


def _open_members(source: Source, archive: zipfile.ZipFile) -> dict[str, _Member]:
    found: dict[str, tuple[zipfile.ZipInfo, str]] = {}
    for info in archive.infolist():
        if "\0" in info.orig_filename:
            raise source.fail(
                info.header_offset, f"the name {info.orig_filename!r} has a NUL character in it"
            )
        if not info.filename.endswith(".npy"):
            continue
        name = info.filename[: -len(".npy")]
        what = f"member {info.filename!r}"
        if name in found:
            raise source.fail(info.header_offset, f"{what} occurs twice")
        if info.flag_bits & _ENCRYPTED:
            raise source.fail(info.header_offset, f"{what} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise source.fail(
                info.header_offset, f"{what} is compressed by method {info.compress_type}"
            )
        found[name] = info, what
    starts = _starts(source, list(found.values()))
    _check_expansion(source, list(found.values()))
    return {
        name: _stored(source, info, start, what)
        if info.compress_type == zipfile.ZIP_STORED
        else _deflated(source, archive, info, what)
        for (name, (info, what)), start in zip(found.items(), starts, strict=True)
    }


def _starts(source: Source, members: list[tuple[zipfile.ZipInfo, str]]) -> list[int]:
    """Return the offset of each member's data; no byte may belong to two members."""
    starts = [_start(source, info, what) for info, what in members]
    before = 0
    order = sorted(range(len(members)), key=lambda i: members[i][0].header_offset)
    for i in order:
        info, what = members[i]
        if info.header_offset < before:
            raise source.fail(info.header_offset, f"{what} overlaps another member")
        before = starts[i] + info.compress_size
    return starts


def _start(source: Source, info: zipfile.ZipInfo, what: str) -> int:
    local = source.slice(info.header_offset, _LOCAL_HEADER, f"the header of {what}")
    if not local.startswith(b"PK\x03\x04"):
        raise source.fail(info.header_offset, f"{what} has no header")
    # The lengths in the local header may differ from those in the directory.
    variable = int.from_bytes(local[26:28], "little") + int.from_bytes(local[28:30], "little")
    start = info.header_offset + _LOCAL_HEADER + variable
    if info.compress_size > source.size - start:
        raise source.fail(
            info.header_offset, f"{what} claims {info.compress_size} bytes, more than the file has"
        )
    return start


def _check_expansion(source: Source, members: list[tuple[zipfile.ZipInfo, str]]) -> None:
    """Refuse members that unpack to too much, before anything is unpacked."""
    most = current_limits().expansion_of(source.size)
    unpacked = 0
    for info, what in members:
        if info.compress_type == zipfile.ZIP_DEFLATED:
            unpacked += info.file_size
        if unpacked > most:
            raise source.fail(
                info.header_offset,
                f"{what} unpacks to {info.file_size} bytes, which with the members before it is "
                f"more than {most}; if the file is trusted, read it inside "
                "passlib.limits(expanded_bytes=...)",
            )


def _stored(source: Source, info: zipfile.ZipInfo, start: int, what: str) -> _Member:
    if info.file_size != info.compress_size:
        raise source.fail(
            info.header_offset,
            f"{what} claims {info.file_size} bytes, but {info.compress_size} are stored",
        )
    end = start + info.file_size
    if not source.mapped and zlib.crc32(memoryview(source.data)[start:end]) != info.CRC:
        raise source.fail(start, f"{what} does not match its checksum")
    return _Member(source, start, end, what)


def _deflated(
    source: Source, archive: zipfile.ZipFile, info: zipfile.ZipInfo, what: str
) -> _Member:
    if info.file_size > _BEST_RATIO * info.compress_size + _BEST_RATIO:
        raise source.fail(
            info.header_offset,
            f"{what} claims to unpack {info.compress_size} bytes to {info.file_size}",
        )
    content = bytearray()
    with archive.open(info) as stream:
        while chunk := stream.read(1 << 20):
            content += chunk
    if len(content) != info.file_size:
        raise source.fail(
            info.header_offset, f"{what} unpacks to {len(content)} bytes, not {info.file_size}"
        )
    return _Member(Source(content, f"{source.name}, {what}"), 0, len(content), what)


def _arrays(members: Mapping[str, _Member]) -> dict[str, Array]:
    folders: dict[str, set[str]] = {}
    for name in members:
        folder, _, leaf = name.rpartition("/")
        folders.setdefault(folder, set()).add(leaf)
    arrays: dict[str, Array] = {}
    for name, member in members.items():
        folder, slash, leaf = name.rpartition("/")
        leaves = folders[folder]
        stype = next((kind for kind, own in _SPARSE_MEMBERS.items() if own == leaves), None)
        if stype is not None and leaf != "data":
            continue
        key = name if stype is None else folder
        if key in arrays:
            raise member.source.fail(member.offset, f"two arrays have the name {key!r}")
        arrays[key] = member.array() if stype is None else _sparse(members, folder + slash, stype)
    return arrays


def _sparse(members: Mapping[str, _Member], prefix: str, stype: str) -> Sparse:
    label = members[prefix + "format"]
    # NumPy may have written the label in four bytes a letter.
    written = label.text().replace(b"\0", b"")
    if written != stype.encode():
        raise label.source.fail(label.offset, f"{label.what} holds {written[:40]!r}, not {stype!r}")
    data = members[prefix + "data"]
    sparse = Sparse(
        stype,
        members[prefix + "shape"].integers(),
        data.array(),
        members[prefix + "indices"].array(),
        members[prefix + "indptr"].array() if stype == CSR else None,
    )
    try:
        sparse.check()
    except ValueError as error:
        raise data.source.fail(
            data.offset, f"{prefix[:-1]!r} is not a valid {stype} array: {error}"
        ) from error
    return sparse


def write_npz(path: str | os.PathLike[str], arrays: Mapping[str, Array]) -> None:
    """Write an archive for MXNet 2.0 and `numpy.load`; a failure leaves an existing file unchanged.

    ``path``: used unchanged; no suffix is added. Raises `UnsupportedError` for an element type that
    MXNet lacks; `ValueError` if two arrays would have the same member name.
    """
    members: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in arrays.items():
        for member, part in _members(name, array):
            if member in members:
                raise ValueError(f"two arrays would be written as {member!r}; rename one")
            members[member] = _storable(part, name)
    with (
        written_from(arrays.values()),
        replacing(path) as temporary,
        zipfile.ZipFile(temporary, "w", allowZip64=True) as archive,
    ):
        for member, part in members.items():
            # A fixed date makes the files of equal weights equal.
            info = zipfile.ZipInfo(f"{member}.npy", (1980, 1, 1, 0, 0, 0))
            with archive.open(info, "w", force_zip64=part.nbytes >= 1 << 31) as stream:
                header = io.BytesIO()
                np.lib.format.write_array_header_1_0(
                    header, np.lib.format.header_data_from_array_1_0(part)
                )
                stream.write(header.getvalue())
                stream.write(part.reshape(-1).view(np.uint8).data)


def _members(name: str, array: Array) -> list[tuple[str, np.ndarray[Any, Any]]]:
    if not isinstance(array, Sparse):
        return [(name, array)]
    parts = [("data", array.data), ("indices", array.indices)]
    if array.indptr is not None:
        parts.append(("indptr", array.indptr))
    parts.append(("shape", np.array(array.shape, np.int64)))
    parts.append(("format", np.array(array.stype.encode())))
    return [(f"{name}/{leaf}", part) for leaf, part in parts]


def _storable(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    plain = np.asarray(array)
    if plain.dtype.kind != "S":
        try:
            number = dtypes.code(plain.dtype)
        except UnsupportedError as error:
            raise UnsupportedError(f"array {name!r}: {error}") from error
        if number == dtypes.BFLOAT16_CODE:
            plain = np.ascontiguousarray(plain).view([("bfloat16", "<u2")]).reshape(plain.shape)
    if not plain.dtype.isnative:
        plain = plain.astype(plain.dtype.newbyteorder("="))
    return plain if plain.flags.c_contiguous else np.ascontiguousarray(plain)
