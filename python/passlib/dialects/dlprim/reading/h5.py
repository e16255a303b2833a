"""Reading .h5 weight files: HDF5 with one dataset for each parameter, at the root by its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.dialects.dlprim.reading.h5_storage import Budget
from passlib.errors import FormatError
from passlib.files.optional import require
from passlib.files.regular import check_path

__all__ = ["MAGIC", "read"]

MAGIC: Final = b"\x89HDF"

_MOST_LINKS: Final = 1 << 17
_DEEPEST: Final = 16


def read(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Read a .h5 file.

    Returns
    -------
    dict of str to numpy.ndarray
        Every numeric dataset, as float32, ordered by name.

    Raises
    ------
    FormatError
        The file is damaged, or its datasets take more memory than `passlib.limits` permits.
    PasslibError
        The package h5py is not installed.
    """
    h5py: Any = require("h5py", extra="h5")
    check_path(path)
    budget = Budget(h5py, path)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    read_from: dict[int, str] = {}
    try:
        with h5py.File(path, "r") as file:
            for name, address, dataset in sorted(_datasets(h5py, file), key=lambda found: found[0]):
                if address in read_from:
                    # Parameters are changed one by one, so each has elements of its own.
                    original = arrays[read_from[address]]
                    budget.expand(name, original.nbytes)
                    arrays[name] = original.copy()
                    continue
                budget.admit(name, dataset)
                arrays[name] = np.asarray(dataset[()], np.float32)
                read_from[address] = name
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError) as error:
        raise FormatError(f"{path}: HDF5 cannot read this file: {error}") from error
    return arrays


def _datasets(h5py: Any, file: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield name, address and object of the datasets; names of those in groups have slashes.

    Links that are not hard are skipped. A group is entered once, by its shortest name, since
    groups may contain each other.
    """
    entered = {_address(h5py, file)}
    pending = deque([("", file)])
    visits = 0
    while pending:
        prefix, group = pending.popleft()
        for key in group:
            visits += 1
            if visits > _MOST_LINKS:
                raise ValueError(f"there are more than {_MOST_LINKS} links in it")
            if not isinstance(group.get(key, getlink=True), h5py.HardLink):
                continue
            try:
                key.encode()
            except UnicodeEncodeError:
                raise ValueError(f"the name {prefix + key!r} is not UTF-8") from None
            item = group[key]
            address = _address(h5py, item)
            if isinstance(item, h5py.Dataset) and item.dtype.kind in "fiu":
                yield prefix + key, address, item
            elif isinstance(item, h5py.Group) and address not in entered:
                entered.add(address)
                if prefix.count("/") < _DEEPEST:
                    pending.append((f"{prefix}{key}/", item))


def _address(h5py: Any, item: Any) -> int:
    return int(h5py.h5o.get_info(item.id).addr)
