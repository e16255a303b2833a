"""Files of fixed names that are replaced one after the other: what a reader must not mix."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from passlib.errors import FormatError, PasslibError
from passlib.files.regular import read_regular
from passlib.files.temporary import PATIENCE, alone_in, own_prefix, waited

_T = TypeVar("_T")

_LARGEST = 1 << 16


def stamp_path(main: Path) -> Path:
    """Return the path of the stamp, which stands beside a model while its files are replaced."""
    return main.with_name(f"{own_prefix(main)}.stamp")


def stamp(main: Path, new: Sequence[tuple[Path, Path | None]]) -> bytes:
    """Return the content of a stamp: how the files are before a save, and how afterwards.

    Parameters
    ----------
    main : Path
    new : sequence of (Path, Path or None)
        Each file, and the one that replaces it; None if it is removed.
    """
    # Files that an earlier save left mixed are in no state to return to.
    whole = is_whole(main)
    states = {
        os.path.relpath(final, main.parent): [
            _state(final) if whole else [],
            None if made is None else _state(made),
        ]
        for final, made in new
    }
    return json.dumps(states).encode()


def is_whole(main: Path) -> bool:
    """Whether the files of a model are of one save, as far as a stamp beside them says."""
    try:
        states = json.loads(read_regular(stamp_path(main))[:_LARGEST])
        found = [(_state(main.parent / name), old, new) for name, (old, new) in states.items()]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, PasslibError):
        return True  # there is no stamp, or nothing that passlib wrote
    return all(now == old for now, old, _ in found) or all(now == new for now, _, new in found)


def check_whole(main: str | os.PathLike[str]) -> None:
    """Refuse the files of a model that an interrupted save left half replaced.

    Raises
    ------
    FormatError
    """
    path = Path(os.path.realpath(main))
    if not is_whole(path):
        raise FormatError(
            f"{main}: a save was interrupted, and the files of this model are now of two saves; "
            f"save the model again, or put together what belongs together (its other files are "
            f"{own_prefix(path)}-*.tmp in the same folder) and delete {stamp_path(path).name}"
        )


def read_together(
    main: str | os.PathLike[str], read: Callable[[], _T], *, bound: bool = True
) -> _T:
    """Read a file and those that belong to it, which are of one save.

    If another process saves them meanwhile, they are read again.

    Parameters
    ----------
    main : path-like
        The file that was given to `passlib.files.saving.Save`.
    read : callable
    bound : bool
        As `Save` was given.

    Raises
    ------
    FormatError
        An interrupted save left the files half replaced, or other processes save them all the
        time.
    """
    path = Path(os.path.realpath(main))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        before = _state(path)
        error: BaseException | None = None
        try:
            found = read()
        except (PasslibError, OSError) as raised:
            error = raised
        # In this order: a stamp disappears after the main file was replaced.
        if bound and stamp_path(path).exists():
            with alone_in(path.parent):
                check_whole(main)
                return read()
        if before == _state(path):
            if error is not None:
                raise error
            return found
    raise waited(Path(main), "saving this model")


def _state(path: Path) -> list[Any] | None:
    """Return what changes when a file is replaced; None if there is none."""
    with suppress(OSError, ValueError):
        about = path.stat()
        return [about.st_ino, about.st_size, about.st_mtime_ns]
    return None
