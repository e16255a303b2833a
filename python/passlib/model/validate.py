"""Validation of model files without loading them."""

from __future__ import annotations

import os
from pathlib import Path

from passlib import dialects
from passlib.dialects import Problem

__all__ = ["Problem", "validate"]


def validate(path: str | os.PathLike[str], dialect: str | None = None) -> list[Problem]:
    """Check a model file and report all problems.

    Parameters
    ----------
    path : path-like
    dialect : str, optional
        The family of models, by default recognised by the content.

    Returns
    -------
    list of Problem
        In the order of the file, each with its place. Errors prevent programs from reading the
        file; warnings do not. Empty for a sound file.

    Raises
    ------
    FormatError
        The file is of no known dialect.
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
    place = Path(path)
    family = dialects.recognise(place) if dialect is None else dialects.find(dialect)
    if not place.exists() and not family.recognises(place):
        raise FileNotFoundError(2, "the model does not exist", os.fspath(place))
    return family.validate(place)
