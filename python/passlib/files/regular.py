"""Opening of paths that may lead to anything: only regular files are read.

Opening a pipe waits for a writer, and reading a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from passlib.errors import FormatError

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_path(
    path: str | os.PathLike[str], *, folders: bool = False, writing: bool = False
) -> Path:
    """Refuse a path that no file can have, or that leads to something other than a file.

    Parameters
    ----------
    path : path-like
        There may be nothing at it.
    folders : bool
        Accept a folder.
    writing : bool
        Whether a file is to be written there, for the message.

    Returns
    -------
    Path

    Raises
    ------
    FormatError
        The message names the kind of thing that is there.
    """
    location = Path(path)
    text = os.fspath(location)
    if "\0" in text:
        raise FormatError(f"{text!r}: a path cannot have a NUL character in it")
    try:
        mode = location.stat().st_mode
    except UnicodeEncodeError as error:
        raise FormatError(f"{text!r}: a path cannot have half of a surrogate pair in it") from error
    except OSError:  # opening it reports why
        return location
    if not (folders and stat.S_ISDIR(mode)):
        _check_mode(location, mode, writing=writing)
    return location


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at a path, or a link to one; never raises."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading, as binary.

    Raises
    ------
    FormatError
        See `check_path`.
    OSError
        The file cannot be opened.
    """
    location = check_path(path)

    def opener(name: str, flags: int) -> int:
        # What is there now may not be what was checked: never wait for a writer of a pipe.
        return os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)

    file: BinaryIO = open(location, "rb", opener=opener)  # noqa: SIM115 (Path has no opener)
    try:
        _check_mode(location, os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read all of a regular file; errors are those of `open_regular`, and lack of memory."""
    with open_regular(path) as file, memory_named(path):
        return file.read()


@contextmanager
def memory_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Report that memory ran out inside the block as an error that names the file.

    Raises
    ------
    FormatError
    """
    try:
        yield
    except (MemoryError, OSError) as error:
        # Mapping a file that does not fit into the address space is an error of the system.
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            raise
        what = f"this file of {Path(path).stat().st_size} bytes" if is_regular(path) else "it"
        raise FormatError(
            f"{os.fspath(path)}: reading {what} needs more memory than there is"
        ) from error


def _check_mode(path: Path, mode: int, *, writing: bool = False) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((kind for matches, kind in _KINDS if matches(mode)), "no file")
    advice = "save under another name" if writing else "copy what it yields to a file"
    raise FormatError(
        f"{path}: this is {kind}, and only regular files are read and written"
        + ("" if stat.S_ISDIR(mode) else f"; {advice}")
    )
