"""Data files that only the replaced version of a model uses."""

from __future__ import annotations

import errno
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

import passlib._core as _core
from passlib.dialects.onnx import external
from passlib.dialects.onnx.messages import external_tensors
from passlib.dialects.onnx.parsing import map_file, parse_model
from passlib.errors import FormatError

__all__ = ["check_replaceable", "data_left_behind"]

logger = logging.getLogger(__name__)


def data_left_behind(path: Path, model: Any) -> list[Path]:
    """Return the data files of the model at a path that the model to replace it does not use.

    Files are deleted only if no other model can be using them: where the folder has other ONNX
    files, all data files stay, and a message is logged.

    Parameters
    ----------
    path : Path
    model : onnx.ModelProto or None
        The new model; None for one without data files.
    """
    if not path.is_file() or not _may_have_data_files(path):
        return []
    left = _files_of(path, _parsed(path)) - _files_of(path, model)
    if not left:
        return []
    others = [other for other in path.parent.glob("*.onnx") if other.name != path.name]
    if others:
        logger.warning(
            "%s no longer uses %s; the files stay because %s may use them",
            path,
            ", ".join(sorted(file.name for file in left)),
            others[0].name,
        )
        return []
    return sorted(left)


def check_replaceable(path: Path, target: Path) -> None:
    """Refuse to write a data file over one that other models use.

    Parameters
    ----------
    path : Path
        The model to be saved.
    target : Path
        Its new data file.

    Raises
    ------
    FileExistsError
        Another model in the folder uses the file; or it is in another folder, so that it cannot
        be replaced together with the model.
    """
    if not target.exists():
        return
    if target.parent.resolve() != path.parent.resolve():
        what = "it cannot be replaced together with the model; choose another location"
        raise FileExistsError(errno.EEXIST, what, str(target))
    for other in sorted(path.parent.glob("*.onnx")):
        if other.name == path.name or not other.is_file() or not _may_have_data_files(other):
            continue
        if target.resolve() in _files_of(other, _parsed(other)):
            what = f"{other.name} has its weights there; choose another location"
            raise FileExistsError(errno.EEXIST, what, str(target))


def _may_have_data_files(path: Path) -> bool:
    """Whether a file has the key of a location outside its weights; it is not parsed for that."""
    try:
        return _core.occurs_outside_weights(b"location", map_file(path))
    except FormatError:
        return False


def _parsed(path: Path) -> Any:
    try:
        return parse_model(map_file(path))[0]
    except FormatError:
        return None


def _files_of(path: Path, model: Any) -> set[Path]:
    """Return the data files of a model; damaged locations lead to none."""
    found: set[Path] = set()
    for tensor in external_tensors(model) if model is not None else ():
        with suppress(FormatError, OSError, ValueError):
            location, _, _ = external.location_of(tensor, tensor.name)
            found.add(external.resolve(path.parent, location, tensor.name))
    return found
