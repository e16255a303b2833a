"""The files that a process of a batch reads, and what they and the results hold."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from passlib.errors import FormatError
from passlib.files.installation import get_include
from passlib.files.regular import is_regular, open_regular
from passlib.workbench.batch.remote import fetch, is_remote

_FILE: Final = "read"
"""The file in the folder of a process that gets their names, a line of JSON each."""


def trace_reads(folder: Path) -> None:
    """Note from here on which files this process opens for reading, and which code it runs.

    That are the files of the model, and Python modules that a file with passes imports. Those
    of Python and passlib themselves are left out.
    """
    notes = os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    skipped = tuple(
        os.path.join(os.path.abspath(place), "")  # noqa: PTH100, PTH118 (quick, and links stay)
        for place in (
            sys.prefix,
            sys.base_prefix,
            Path(get_include()).parent,
            *("/proc", "/sys", "/dev"),
            folder,
            tempfile.gettempdir() + "/passlib-",
        )
    )
    seen: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if not isinstance(name, (str, bytes)) or flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event == "exec":
            name = getattr(arguments[0], "co_filename", "")
        else:
            return
        path = os.path.abspath(os.fsdecode(name))  # noqa: PTH100
        if path not in seen and not path.startswith(skipped):
            seen.add(path)
            os.write(notes, json.dumps(path).encode() + b"\n")

    sys.addaudithook(note)


def files_read(folder: Path) -> list[str]:
    """Return the files that the process of a folder has read, of those that are still there."""
    try:
        lines = (folder / _FILE).read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return [path for path in map(json.loads, lines) if is_regular(path)]


def digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the digest of each file, see `digest_of`."""
    return {path: digest_of(path) for path in dict.fromkeys(paths)}


def digest_of(path: str) -> str:
    """Return the sha256 of a file or of what a URL has; empty if it cannot be read."""
    try:
        if is_remote(path):
            with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
                return digest_of(str(fetch(path, Path(folder))))
        found = hashlib.sha256()
        with open_regular(path) as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()
    except (OSError, FormatError):
        return ""
