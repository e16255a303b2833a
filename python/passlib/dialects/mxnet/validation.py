"""Validation of MXNet models."""

from __future__ import annotations

import os
from pathlib import Path

from passlib.dialects.mxnet import files
from passlib.dialects.mxnet.reading.symbol import read_file
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError, GraphError

__all__ = ["validate"]


def validate(path: Path) -> list[Problem]:
    """Check that the symbol file of a model can be read; the first error ends the check."""
    try:
        read_file(files.find(path).symbol)
    except (FormatError, GraphError) as error:
        return [Problem("error", os.fspath(path), str(error))]
    return []
