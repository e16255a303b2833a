"""Where a saved ONNX model has its weights: in the file, or in another one next to it."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from passlib.errors import UnsupportedError

_THRESHOLD = 1024
"""The default of ``onnx.save_model``."""


class Placement(NamedTuple):
    """Where weights go.

    Attributes
    ----------
    external : bool
        Whether weights go to a data file; otherwise all are in the model.
    location : str
        Path of the data file relative to the model; empty for a free name.
    size_threshold : int
        Bytes from which on a weight goes to the data file.
    """

    external: bool
    location: str
    size_threshold: int

    def moves(self, size: int) -> bool:
        """Whether a weight of a number of bytes goes to the data file."""
        return self.external and size >= self.size_threshold

    def target(self, path: Path) -> Path | None:
        """Return the data file of a model at a path; None where its name is not chosen.

        Raises
        ------
        UnsupportedError
            The location is not a path inside the model's folder, or it is the model's own.
        """
        if not self.location:
            return None
        pure = PurePosixPath(self.location)
        if pure.is_absolute() or ".." in pure.parts or {"\0", "\\"}.intersection(self.location):
            raise UnsupportedError(
                f"location is {self.location!r}; it must be a plain path relative to the folder of "
                f"the model, such as {path.name + '.data'!r}"
            )
        target = path.parent / pure
        if target == path or target.is_dir():
            what = "the model itself" if target == path else "a folder"
            raise UnsupportedError(f"location is {self.location!r}, which is {what}")
        return target


def placement_of(
    external_data: Any = None, location: Any = None, size_threshold: Any = None
) -> Placement | None:
    """Return the placement that the options of `Model.save` ask for; None for that of the file.

    Raises
    ------
    TypeError
        An option is of another type, or one of the data file is given without
        ``external_data=True``.
    """
    if external_data is not None and not isinstance(external_data, bool):
        raise TypeError(
            f"external_data is {external_data!r}, but must be True or False; the name of the data "
            "file is location='...'"
        )
    if not external_data and (location is not None or size_threshold is not None):
        name = "location" if location is not None else "size_threshold"
        raise TypeError(f"{name} is about the data file of external_data=True; give that as well")
    if external_data is None:
        return None
    if location is not None and not isinstance(location, (str, os.PathLike)):
        raise TypeError(f"location is {location!r}, but must be the name of a file")
    threshold = _THRESHOLD if size_threshold is None else size_threshold
    if isinstance(threshold, bool) or not isinstance(threshold, int) or threshold < 0:
        raise TypeError(f"size_threshold is {threshold!r}, but must be a number of bytes")
    return Placement(external_data, os.fspath(location or ""), threshold)
