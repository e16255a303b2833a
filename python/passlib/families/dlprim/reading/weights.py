"""Reading weight files: .dlp, a JSON header before the elements, see `DlpHeader`; .h5, HDF5."""

from __future__ import annotations

import math
import os
import zlib
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib._core import JsonObject
from passlib.dialects.json_text import parse
from passlib.errors import FormatError, GraphError, listed
from passlib.families.dlprim.network import (
    DLP_LENGTH_BYTES,
    DLP_LONGEST_HEADER,
    DLP_MAGIC,
    NAMES,
    DlpEntry,
    DlpHeader,
    Spec,
    WeightFile,
    numpy_type,
)
from passlib.files.limits import current_limits
from passlib.files.optional import require
from passlib.files.regular import check_path, memory_named, open_regular

_TYPES: Final = {**NAMES, "double": "float64", "uint32": "uint32"}
"""Element types in a header; no network uses the last two, but the original can write them."""


def read_dlp(path: Path) -> tuple[dict[str, np.ndarray[Any, Any]], DlpHeader]:
    """Read a .dlp file: its arrays, in the order of the header, and the header.

    Raises `FormatError` if the file is damaged.
    """
    with open_regular(path) as file, memory_named(path):
        size = os.fstat(file.fileno()).st_size
        begin = file.read(len(DLP_MAGIC) + DLP_LENGTH_BYTES)
        length = int.from_bytes(begin[len(DLP_MAGIC) :], "big")
        left = size - len(begin) - length
        if len(begin) < len(DLP_MAGIC) + DLP_LENGTH_BYTES or not begin.startswith(DLP_MAGIC):
            raise FormatError(f"{path}: does not begin with DLPW and the length of its header")
        if length > DLP_LONGEST_HEADER or left < 0:
            raise FormatError(f"{path}: a header of {length} bytes does not fit", offset=4)
        text = file.read(length)
        entries = _entries(path, text, left)
        arrays = {}
        for name, entry in entries.items():
            file.seek(len(begin) + length + entry.start)
            dtype = numpy_type(entry.spec.dtype)
            flat = np.frombuffer(file.read(entry.size), dtype.newbyteorder("<"))
            # A copy, in memory that NumPy aligns.
            arrays[name] = flat.astype(dtype).reshape(entry.spec.shape)
    return arrays, DlpHeader(text, entries)


def _entries(path: Path, text: bytes, left: int) -> dict[str, DlpEntry]:
    try:
        root = parse(text, comments=True)
    except FormatError as error:
        raise error.within(f"{path}: the header is not JSON") from error
    tensors = root.get("tensors") if isinstance(root, JsonObject) else None
    if not isinstance(tensors, JsonObject):
        raise FormatError(f"{path}: the header has no object 'tensors'")
    entries = {name: _entry(path, name, json, left) for name, json in tensors.items()}
    if sum(entry.size for entry in entries.values()) > left:
        raise FormatError(f"{path}: the tensors have more bytes than the file")
    return entries


def _entry(path: Path, name: str, json: Any, left: int) -> DlpEntry:
    where = f"{path}: tensors[{name!r}]"
    if not isinstance(json, JsonObject):
        raise FormatError(f"{where} is not an object")
    dtype = json.get("dtype")
    if not isinstance(dtype, str) or dtype not in _TYPES:
        raise FormatError(f"{where}.dtype is {dtype!r}, not one of {', '.join(_TYPES)}")
    shape = json.get("shape", [])
    if not isinstance(shape, list) or not all(_is_count(item) for item in shape):
        raise FormatError(f"{where}.shape is not a list of sizes")
    if not _is_count(json.get("start")) or not _is_count(json.get("size")):
        raise FormatError(f"{where}: start and size must be integers, 0 or greater")
    start, size = int(json["start"]), int(json["size"])
    spec = Spec(_TYPES[dtype], tuple(int(item) for item in shape))
    if start + size > left:
        raise FormatError(f"{where} ends at byte {start + size} of {left}")
    if size != math.prod(spec.shape) * numpy_type(spec.dtype).itemsize:
        raise FormatError(f"{where}: {spec} does not have {size} bytes")
    return DlpEntry(spec, start, size)


def _is_count(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < 2.0**62 and value == int(value)


_LARGEST_CHUNK: Final = 4 << 30
_DEFLATE_RATIO: Final = 1032
"""Deflate cannot shrink further."""

_LZF_RATIO: Final = 100
"""LZF writes at least three bytes for 264."""

_CHUNK: Final = 4096
"""Bytes that HDF5 needs for each chunk that it reads, stored or not: its places and lists."""

_CHECKSUM: Final = 4
"""Bytes that Fletcher's checksum adds to a chunk."""


class Budget:
    """The bytes that the datasets of one file may take."""

    def __init__(self, h5py: Any, path: Path) -> None:
        self._h5py = h5py
        self._path = path
        self._stored = path.stat().st_size
        self._most = current_limits().expansion_of(self._stored)
        self._left = self._most

    def admit(self, name: str, dataset: Any) -> None:
        """Charge a dataset that is read next.

        Raises `FormatError` if it takes more than is left, shares its bytes in the file with
        others, or keeps its elements in other files.
        """
        if dataset.external or dataset.is_virtual:
            # A model from elsewhere must not read arbitrary files of its user.
            raise self._fail(name, "keeps its elements in other files")
        if dataset.shape is None:
            raise self._fail(name, "has no elements and no shape")
        stored = int(dataset.id.get_storage_size())
        self._stored -= stored
        if self._stored < 0:
            raise self._fail(name, f"claims {stored} bytes, more than the others leave of the file")
        size = math.prod(map(int, dataset.shape))
        beyond = max(size * max(dataset.dtype.itemsize, 4) - stored, 0)
        if dataset.chunks is not None and size:
            pairs = zip(dataset.shape, dataset.chunks, strict=True)
            count = math.prod(-(-int(length) // int(side)) for length, side in pairs)
            beyond = max(beyond, _CHUNK * count)
        self.expand(name, beyond)
        if dataset.chunks is not None and stored:
            self._check_chunks(name, dataset, stored)

    def expand(self, name: str, count: int) -> None:
        """Charge bytes that are not in the file.

        Raises `FormatError` if they are more than are left.
        """
        self._left -= count
        if self._left < 0:
            raise self._too_large(name, count)

    def _check_chunks(self, name: str, dataset: Any, stored: int) -> None:
        """Check a chunk's size in memory: HDF5 reads chunks as a whole."""
        whole = math.prod(map(int, dataset.chunks)) * dataset.dtype.itemsize
        if whole > min(max(self._most, self._path.stat().st_size), _LARGEST_CHUNK):
            raise self._too_large(name, whole)
        packing = self._packing(name, dataset, whole)
        if packing is None:
            return
        place, deflates = packing
        ratio = _DEFLATE_RATIO if deflates else _LZF_RATIO
        if stored * ratio <= self._most:
            return
        # HDF5's filters grow their buffers until the stream ends, whatever the chunk's size.
        for chunk in _chunks(dataset.id):
            if chunk.size * ratio <= self._most or chunk.filter_mask >> place & 1:
                continue
            if not deflates:
                raise self._too_large(name, chunk.size * ratio)
            _, content = dataset.id.read_direct_chunk(chunk.chunk_offset)
            if not _ends_within(content, whole + _CHECKSUM):
                raise self._fail(name, f"has a chunk that does not unpack to its {whole} bytes")

    def _packing(self, name: str, dataset: Any, whole: int) -> tuple[int, bool] | None:
        """Check the filters; return the place of the one that compresses, and whether by deflate.

        None if there is none.
        """
        h5z = self._h5py.h5z
        lzf = h5z.FILTER_LZF
        harmless = {h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}
        plist = dataset.id.get_create_plist()
        packing: list[tuple[int, bool]] = []
        for i in range(plist.get_nfilters()):
            number, _, values, label = plist.get_filter(i)
            if number in harmless:
                continue
            if number not in (h5z.FILTER_DEFLATE, lzf):
                raise self._fail(
                    name,
                    f"is compressed by the filter {number} ({label.decode(errors='replace')}); "
                    "rewrite the file with gzip or without compression",
                )
            if number == lzf and len(values) > 2 and values[2] > whole:
                raise self._fail(name, f"has LZF chunks of {values[2]} bytes, not {whole}")
            packing.append((i, number != lzf))
        if len(packing) > 1:
            raise self._fail(name, "is compressed more than once")
        return packing[0] if packing else None

    def _too_large(self, name: str, count: int) -> FormatError:
        return self._fail(
            name,
            f"takes {count} bytes that are not in the file, which with the datasets before it is "
            f"more than {self._most}; if the file is trusted, read it inside "
            "passlib.limits(expanded_bytes=...)",
        )

    def _fail(self, name: str, what: str) -> FormatError:
        return FormatError(f"{self._path}: dataset {name!r} {what}")


def _chunks(dataset: Any) -> list[Any]:
    found: list[Any] = []
    if hasattr(dataset, "chunk_iter"):  # h5py 3.8
        dataset.chunk_iter(found.append)
        return found
    return [dataset.get_chunk_info(i) for i in range(dataset.get_num_chunks())]


def _ends_within(content: bytes, most: int) -> bool:
    """Whether a deflated stream unpacks to no more than ``most`` bytes."""
    stream = zlib.decompressobj()
    left = most + 1
    try:
        while left > 0 and content and not stream.eof:
            left -= len(stream.decompress(content, min(left, 1 << 20)))
            content = stream.unconsumed_tail
    except zlib.error:
        return False
    return left > 0


H5_MAGIC: Final = b"\x89HDF"

_MOST_LINKS: Final = 1 << 17
_DEEPEST: Final = 16


def read_h5(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a .h5 file: every numeric dataset, as float32, ordered by name.

    Raises `FormatError` if the file is damaged, or its datasets take more memory than
    `passlib.limits` permits; `PasslibError` if the package h5py is not installed.
    """
    h5py: Any = require("h5py", extra="h5")
    check_path(path)
    budget = Budget(h5py, path)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    read_from: dict[int, str] = {}
    try:
        with h5py.File(path, "r") as file:
            links, datasets = _datasets(h5py, file)
            for name, address in sorted(links):
                if address in read_from:
                    # Parameters are changed one by one, so each has elements of its own.
                    original = arrays[read_from[address]]
                    budget.expand(name, original.nbytes)
                    arrays[name] = original.copy()
                    continue
                budget.admit(name, datasets[address])
                arrays[name] = np.asarray(datasets[address][()], np.float32)
                read_from[address] = name
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise FormatError(f"{path}: HDF5 cannot read this file: {error}") from error
    return arrays


def _datasets(h5py: Any, file: Any) -> tuple[list[tuple[str, int]], dict[int, Any]]:
    """Find the datasets of numbers: their names with addresses, and the datasets by address.

    Links that are not hard are skipped. A group is entered once, by its shortest name, since groups
    may contain each other; names of datasets in groups have slashes.
    """
    links: list[tuple[str, int]] = []
    datasets: dict[int, Any] = {}
    seen = {int(h5py.h5o.get_info(file.id).addr)}
    pending = deque([("", file)])
    visits = 0
    while pending:
        prefix, group = pending.popleft()
        for key in group.id:
            visits += 1
            if visits > _MOST_LINKS:
                raise ValueError(f"there are more than {_MOST_LINKS} links in it")
            if group.id.links.get_info(key).type != h5py.h5l.TYPE_HARD:
                continue
            name = prefix + _text(prefix, key)
            # Opening an object takes far longer than looking up its address.
            address = int(h5py.h5o.get_info(group.id, key).addr)
            if address not in seen:
                seen.add(address)
                item = group[key]
                if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu":
                    datasets[address] = item
                elif isinstance(item, h5py.Group):
                    if prefix.count("/") >= _DEEPEST:
                        raise ValueError(f"groups are nested more than {_DEEPEST} levels deep")
                    pending.append((f"{name}/", item))
            if address in datasets:
                links.append((name, address))
    return links, datasets


def _text(prefix: str, key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        name = prefix + key.decode(errors="surrogateescape")
        raise ValueError(f"the name {name!r} is not UTF-8") from None


def read_weights(
    path: Path, wanted: Mapping[str, Spec], *, allow_missing: bool = False
) -> tuple[dict[str, Any], WeightFile]:
    """Read a weight file, whatever its suffix: everything in it, in its order.

    ``wanted`` are the parameters of the network, of which ``allow_missing`` accepts only some.
    Raises `FormatError` if the file is damaged, or neither .dlp nor .h5; `GraphError` if a
    parameter is missing, or has another shape or type.
    """
    with open_regular(path) as file:
        magic = file.read(4)
    suffix = path.suffix
    if magic == DLP_MAGIC:
        arrays, header = read_dlp(path)
        weights = WeightFile("dlp", suffix or ".dlp", header, tuple(arrays))
    elif magic == H5_MAGIC:
        arrays = read_h5(path)
        weights = WeightFile("h5", suffix or ".h5", None, tuple(arrays))
    else:
        raise FormatError(f"{path}: neither a .dlp nor an HDF5 file: it begins with {magic!r}")
    missing = [name for name in wanted if name not in arrays]
    if missing and not allow_missing:
        raise GraphError(
            f"{path}: {len(missing)} of the network's {len(wanted)} parameters are missing "
            f"({listed(missing, 5)}); pass allow_missing=True to load the model without them"
        )
    for name, spec in wanted.items():
        array = arrays.get(name)
        if array is not None and (array.shape, array.dtype.name) != (spec.shape, spec.dtype):
            found = Spec(array.dtype.name, array.shape)
            raise GraphError(f"{path}: parameter {name!r} is {found}, the network needs {spec}")
    return arrays, weights
