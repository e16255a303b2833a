"""Output files of commands: checked before the work begins, written atomically."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from passlib import dialects
from passlib.cli.status import UsageError
from passlib.dialects.table import check_target
from passlib.files.regular import replacing

if TYPE_CHECKING:
    from passlib.model import Model


def require_file(option: str, path: str) -> None:
    """Check that a file of this name can be written.

    Raises
    ------
    UsageError
        The name is empty, or a folder, or in a missing folder.
    """
    if path and Path(path).is_dir():
        raise UsageError(f"{option} {path}: this is a folder; add a file name")
    _require_parent(option, path)


def require_page(option: str, path: str, *, makes_folder: bool = False) -> None:
    """Check that an HTML page of this name can be written.

    ``makes_folder``: a missing folder is made.

    Raises
    ------
    UsageError
        See `require_file`; or the suffix is that of another format.
    """
    if not makes_folder or Path(path).is_dir():
        require_file(option, path)
    suffix = Path(path).suffix
    if suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(f"{option} {path}: this writes an HTML page, not {suffix}")


def require_model(option: str, path: str, dialect: str) -> None:
    """Check that a model of a dialect can be saved under this name.

    Raises
    ------
    UsageError
        See `require_file`.
    OSError
        The name is a folder.
    UnsupportedError
        The suffix belongs to another format.
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


def save_edited(arguments: argparse.Namespace, edit: Callable[[Model], Model]) -> None:
    """Load the model of a command, change it, and save it as ``-o``.

    Raises
    ------
    UsageError, OSError, UnsupportedError
        See `require_model`.
    """
    from passlib.model import load

    path = arguments.model
    require_model("-o", arguments.output, dialects.recognise(path).name)
    edit(load(path)).save(arguments.output)


def require_folder(option: str, path: str) -> None:
    """Check that a path is a folder or can become one, or raise a UsageError."""
    if not path:
        raise UsageError(f"{option}: the name of the folder is empty")
    place = Path(path)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{option} {path}: expected a folder, found a file")


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text, such as an HTML document, and return its path."""
    target = Path(path)
    with replacing(target) as made:
        made.write_text(text, "utf-8")
    return target
