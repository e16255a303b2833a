"""Names under which models are saved: those of their own format."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from passlib.dialects.protocol import Dialect
from passlib.dialects.table import find, names
from passlib.errors import UnsupportedError

_MXNET: Final = "-symbol.json"
"""The end of names by which MXNet's models are recognised before their content is looked at."""


def _owners(suffix: str) -> list[Dialect]:
    """Return the dialects whose files have a suffix, in the order of recognition."""
    found = [find(name) for name in names()]
    return [d for d in found if suffix in d.suffixes or suffix in d.weight_suffixes]


def check_target(path: str | os.PathLike[str], dialect: Dialect) -> Path:
    """Refuse a name for a model that is a folder's, or has another format's suffix.

    A suffix that no format has, as in ``resnet.v1``, is part of the name.

    Parameters
    ----------
    path : path-like
    dialect : Dialect
        The family of the model that is to be written.

    Returns
    -------
    Path

    Raises
    ------
    IsADirectoryError
        The name is empty, ``.`` or ``..``, ends in a slash, or is that of a folder.
    UnsupportedError
        The suffix is that of another format, or of a weight file.
    """
    text = os.fspath(path)
    if isinstance(text, bytes):
        raise TypeError(
            f"a model is saved under a path of str, not bytes; use os.fsdecode({text!r})"
        )
    ends = text.endswith((os.sep, f"{os.sep}.")) or Path(text).name in ("", os.pardir)
    if ends or (not dialect.appends_suffixes and Path(text).is_dir()):
        example = Path(text) / "model"
        what = f"this is a folder; add the name of a file in it, such as {example}"
        raise IsADirectoryError(errno.EISDIR, what, text)
    place = Path(text)
    suffix = place.suffix.lower()
    reserved = place.name.endswith(_MXNET) and not dialect.appends_suffixes
    if reserved and suffix in dialect.suffixes:
        better = place.with_name(f"{place.name.removesuffix(_MXNET)}.json")
        raise UnsupportedError(
            f"{place}: models with names in {_MXNET} are read as MXNet's, and this one would be "
            f"written as {dialect.title}; name it {better}"
        )
    if not suffix or suffix in dialect.suffixes:
        return place
    if suffix in dialect.weight_suffixes:
        raise UnsupportedError(
            f"{place}: {suffix} is the suffix of a weight file; the graph gets the name, and the "
            f"weights go next to it: {place.with_suffix(dialect.suffixes[0])}"
        )
    others = _owners(suffix)
    if others:
        titles = " and ".join(other.title for other in others)
        if dialect.name == "onnx":
            raise UnsupportedError(
                f"{place}: {suffix} is a suffix of {titles}, and this is written as ONNX; name it "
                f"{place.with_suffix('.onnx')}, or use Model.save for the form that was read"
            )
        raise UnsupportedError(
            f"{place}: {suffix} is a suffix of {titles}, and the model would be written as "
            f"{dialect.title}; passlib.convert(source, target) and Model.to_onnx(target) write "
            "ONNX files, and Model.save the form that was read"
        )
    return place
