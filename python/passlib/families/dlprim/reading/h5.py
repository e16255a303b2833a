"""Reading .h5 weight files: HDF5 with one dataset for each parameter, at the root by its name."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import FormatError
from passlib.families.dlprim.reading.h5_storage import Budget
from passlib.files.optional import require
from passlib.files.regular import check_path

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
    """Find the datasets of numbers.

    Links that are not hard are skipped. A group is entered once, by its shortest name, since
    groups may contain each other.

    Returns
    -------
    links : list of tuple of str and int
        Name and address of each; names of those in groups have slashes.
    datasets : dict of int to h5py.Dataset
        By address.
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
