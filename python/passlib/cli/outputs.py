"""Checks of the files that a command is to write, before its work begins."""

from __future__ import annotations

from pathlib import Path

from passlib import dialects
from passlib.cli.status import UsageError
from passlib.dialects.table import check_target


def require_file(option: str, path: str) -> None:
    """Check that a file of this name can be written.

    Raises
    ------
    UsageError
        The name is empty or a folder's, or its folder does not exist.
    """
    if path and Path(path).is_dir():
        raise UsageError(f"{option} {path}: this is a folder; add a file name")
    _require_parent(option, path)


def require_model(option: str, path: str, dialect: str) -> None:
    """Check that a model of a dialect can be saved under this name.

    Raises
    ------
    UsageError
        As of `require_file`.
    OSError
        The name is a folder's.
    UnsupportedError
        Its suffix is that of another format.
    """
    if path:
        check_target(path, dialects.find(dialect))
    _require_parent(option, path)


def _require_parent(option: str, path: str) -> None:
    if not path:
        raise UsageError(f"{option}: the name of the file is empty")
    folder = Path(path).parent
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: the folder {folder} does not exist; make it")


def require_folder(option: str, path: str) -> None:
    """Check that this is a folder or may become one.

    Raises
    ------
    UsageError
        The name is empty, or a file's.
    """
    if not path:
        raise UsageError(f"{option}: the name of the folder is empty")
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{option} {path}: expected a folder, found a file")
