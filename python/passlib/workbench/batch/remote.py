"""Models behind URLs, which the package fsspec opens."""

from __future__ import annotations

from pathlib import Path

from passlib.files.optional import require


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def fetch(url: str, folder: Path) -> Path:
    """Copy the file behind a URL into a folder.

    Raises
    ------
    PasslibError
        fsspec is not installed.
    OSError
        There is no such file.
    """
    fsspec = require("fsspec", extra="fsspec")
    target = folder / url.rstrip("/").rpartition("/")[2]
    with fsspec.open(url, "rb") as source:
        target.write_bytes(source.read())
    return target


def store(folder: Path, url: str) -> None:
    """Copy the files of a folder next to a URL, under their names.

    Raises
    ------
    PasslibError
        fsspec is not installed.
    """
    fsspec = require("fsspec", extra="fsspec")
    place = url.rpartition("/")[0]
    for path in sorted(folder.iterdir()):
        with fsspec.open(f"{place}/{path.name}", "wb") as target:
            target.write(path.read_bytes())
