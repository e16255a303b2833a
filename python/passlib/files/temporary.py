"""New files under hidden names, and locks against other saves."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from passlib.errors import FormatError

PATIENCE = 10.0
"""Seconds to wait for another process that saves the same model."""

_TEMPORARY = re.compile(r"\.passlib-[0-9a-f]{16}-[0-9a-f]{16}\.tmp")


def own_prefix(main: Path) -> str:
    """Return how the names of all hidden files of one model begin, however long its own is."""
    return f".passlib-{hashlib.sha256(os.fsencode(main.name)).hexdigest()[:16]}"


def is_temporary(path: Path) -> bool:
    """Whether a path has the name of a file that is being written."""
    return _TEMPORARY.fullmatch(path.name) is not None


def new_name(folder: Path, main: Path) -> Path:
    """Return a hidden name for a file of a model."""
    return folder / f"{own_prefix(main)}-{os.urandom(8).hex()}.tmp"


def create_temporary(folder: Path, main: Path) -> tuple[Path, int]:
    """Create a file that is being written, and lock it while its descriptor is open.

    Raises
    ------
    OSError
        The folder is not writable; the error names it rather than the file.
    """
    while True:
        path = new_name(folder, main)
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(folder)) from None
        # Until it is locked, another save may take it for one that a killed process left.
        lock(file)
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)


def lock(file: int, *, sweeping: bool = False) -> bool:
    """Lock an open file; return whether that succeeded.

    A save waits for one that sweeps, and then finds its file deleted or spared. The lock is one
    of the open file description: it lasts until the descriptor is closed, and
    libraries that call ``flock``, as HDF5 does, do not meet it.
    """
    kind = fcntl.F_RDLCK if sweeping else fcntl.F_WRLCK
    command = fcntl.F_OFD_SETLK if sweeping else fcntl.F_OFD_SETLKW
    whole = struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(file, command, whole)
    except OSError:
        return False
    return True


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder against other saves, which wait; where it cannot be locked, do nothing.

    Raises
    ------
    FormatError
        Another process holds the folder and does not come to an end.
    """
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise waited(folder, "saving in this folder") from None
                time.sleep(0.01)
                continue
            except OSError:  # the file system has no locks
                pass
            break
        yield
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


def waited(place: Path, what: str) -> FormatError:
    """Return the error for another process that does not come to an end."""
    return FormatError(
        f"{place}: another process has been {what} for {PATIENCE:.0f} seconds; try again when it "
        "is done"
    )
