"""Validation of model files without loading them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from passlib import dialects
from passlib.dialects import Dialect, Problem
from passlib.files.regular import memory_named
from passlib.model.loading import content_of


def validate(path: Any, dialect: str | None = None) -> list[Problem]:
    """Check a model file and report all problems.

    Parameters
    ----------
    path : path-like, bytes or onnx.ModelProto
        A model may also be given by its content, without the data that is in other files.
    dialect : str, optional
        The family of models, by default recognised by the content of a file; bytes are ONNX's.

    Returns
    -------
    list of Problem
        In the order of the file, each with its place. Errors prevent programs from reading the
        file; warnings do not. Empty for a sound file.

    Raises
    ------
    FormatError
        The file is of no known dialect.
    TypeError
        The argument is neither a path nor a model.
    OSError
        The file does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
    ...     _ = file.write(pl.sym.relu(pl.sym.var("x")).tojson())
    ...     file.flush()
    ...     pl.validate(file.name)
    []
    """
    content = content_of(path)
    if content is not None:
        return _validate_content(content, dialects.find("onnx" if dialect is None else dialect))
    place = Path(path)
    with memory_named(place):
        family = dialects.recognise(place) if dialect is None else dialects.find(dialect)
        if not place.exists() and not family.recognises(place):
            raise FileNotFoundError(2, "the model does not exist", os.fspath(place))
        return family.validate(place)


def _validate_content(content: bytes, family: Dialect) -> list[Problem]:
    """Check bytes in a file, by which no problem names them."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "model").with_suffix(family.suffixes[0])
        place.write_bytes(content)
        found = family.validate(place)

    def named(text: str) -> str:
        return text.replace(str(place), "the given bytes").replace(f"{folder}{os.sep}", "")

    return [Problem(each.severity, named(each.place), named(each.message)) for each in found]
