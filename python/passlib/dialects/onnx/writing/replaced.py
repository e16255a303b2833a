"""Data files of ONNX models that a save may replace or delete: those that nobody else needs."""

from __future__ import annotations

import errno
import hashlib
import logging
import mmap
import os
from contextlib import suppress
from pathlib import Path

import passlib._core as _core
from passlib.dialects.onnx import external
from passlib.dialects.onnx.messages import external_tensors
from passlib.dialects.onnx.parsing import map_file, parse_model
from passlib.errors import FormatError, PasslibError, printable
from passlib.files.regular import is_regular, open_regular
from passlib.files.temporary import is_temporary

logger = logging.getLogger(__name__)

_ATTRIBUTE = "user.passlib.data-of"
"""An extended attribute of the data files that passlib wrote: no model's text can forge it."""


def mark(file: Path, final: Path, path: Path) -> None:
    """Mark a complete data file as one that passlib wrote for a model.

    Without the mark, as on a file system that has no attributes, the file is never deleted: marks
    in files could come with the model. It ends with the next change of the content.

    Parameters
    ----------
    file : Path
    final : Path
        The name that it will have.
    path : Path
        Of the model.
    """
    try:
        os.setxattr(file, _ATTRIBUTE, _mark(file.stat(), final, path))
    except OSError as error:
        logger.warning(
            "%s cannot be marked as data of %s (%s), so later saves will not delete it",
            *map(printable, (final, path.name, error.strerror)),
        )


def folders_of(path: Path) -> set[Path]:
    """Return the folders where a model, if there is one at the path, may have data files."""
    with suppress(PasslibError, OSError):
        return {file.parent for file in _data_files(path)} | {_folder(path)}
    return {_folder(path)}


def data_left_behind(path: Path, folders: set[Path]) -> set[Path]:
    """Return the data files that passlib wrote for a model, and that nobody needs any more.

    Parameters
    ----------
    path : Path
        Of the model, which is in place.
    folders : set of Path
        Where its data files are or were.

    Raises
    ------
    FormatError
        The model cannot be read.
    """
    owned = []
    for folder in folders:
        with suppress(OSError):
            owned += [f for f in folder.iterdir() if not is_temporary(f) and _owns(path, f)]
    left = set()
    for file in set(owned) - _data_files(path) if owned else ():
        user = _other_user(file, path)
        if user is None:
            left.add(file)
        else:
            logger.warning(
                "%s no longer uses %s, but %s may use it",
                path,
                *map(printable, (file.name, user.name)),
            )
    return left


def check_replaceable(path: Path, target: Path) -> None:
    """Refuse to write a data file over anything but a data file of the same model.

    Raises
    ------
    FileExistsError
        Another model uses the file, it is a model, or the model at the path does not use it, and
        passlib did not write it for that model.
    """
    if not os.path.lexists(target):
        return
    user = _other_user(target, path)
    if user is not None:
        what = f"{user.name} has its weights there"
    elif target.suffix.lower() == ".onnx" or _is_model(target):
        what = "it is a model"
    elif _owns(path, target) or (path.is_file() and target.resolve() in _data_files(path)):
        return
    else:
        what = f"it is no data file of {path.name}"
    raise FileExistsError(errno.EEXIST, f"{what}; choose another location", str(target))


def _data_files(path: Path) -> set[Path]:
    """Return the data files of a model; damaged locations lead to none."""
    found: set[Path] = set()
    content = map_file(path)
    if not _core.occurs_outside_weights(b"location", content):
        return found
    for tensor in external_tensors(parse_model(content)[0]):
        with suppress(FormatError, OSError, ValueError):
            location, _, _ = external.location_of(tensor, tensor.name)
            found.add(external.resolve(path.parent, location, tensor.name))
    return found


def _folder(path: Path) -> Path:
    return Path(os.path.realpath(path.parent))


def _mark(state: os.stat_result, final: Path, path: Path) -> bytes:
    owner = os.fsencode(os.path.relpath(os.path.realpath(path), os.path.realpath(final.parent)))
    return hashlib.sha256(b"%d %d " % (state.st_size, state.st_mtime_ns) + owner).digest()


def _owns(path: Path, file: Path) -> bool:
    """Whether passlib wrote a data file for a model, and nothing has changed it since."""
    with suppress(OSError):
        found = os.getxattr(file, _ATTRIBUTE, follow_symlinks=False)
        return found == _mark(file.lstat(), file, path)
    return False


def _is_model(file: Path) -> bool:
    with suppress(FormatError, OSError):
        return bool(_core.is_onnx(map_file(file)))
    return False


def _other_user(file: Path, path: Path) -> Path | None:
    """Return what may need a data file of a model besides it: another model, or a link."""
    # The data of a model can be in folders of its own one, but not outside.
    above = file.parent.parent
    for folder in {file.parent, _folder(path), above}:
        try:
            others = sorted(folder.iterdir())
        except OSError:
            continue
        for other in others:
            real = os.path.realpath(other)
            if real == os.path.realpath(path) or other == file:
                continue
            if real == os.path.realpath(file):
                return other
            suffixed = other.suffix.lower() == ".onnx"
            if (folder == above and not suffixed) or is_temporary(other) or not is_regular(other):
                continue
            if (suffixed or _is_model(other)) and _may_use(other, file):
                return other
    return None


def _may_use(model: Path, file: Path) -> bool:
    """Whether a model has its weights in a file."""
    try:
        return file in _data_files(model)
    except FormatError:
        # It may be damaged for passlib alone.
        return _occurs(os.fsencode(file.name), model)
    except (PasslibError, OSError):
        return True


def _occurs(text: bytes, path: Path) -> bool:
    with open_regular(path) as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0
