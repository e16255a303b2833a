"""ONNX files mapped into memory, and as messages of the package onnx."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.errors import FormatError
from passlib.files.optional import require
from passlib.files.regular import open_regular


def map_file(path: Path) -> _core.FileMapping | bytes:
    """Map a file into memory for reading."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return _core.FileMapping(file.fileno(), str(path.absolute()))


def parse_model(
    data: _core.FileMapping | bytes, *, outline: bool = False
) -> tuple[Any, dict[int, np.ndarray[Any, Any]]]:
    """Parse a serialized model.

    Parameters
    ----------
    data : buffer
    outline : bool
        Cut long lists in attributes of operators that are not ONNX's own.

    Returns
    -------
    model : onnx.ModelProto
        Without the raw data of its larger weights.
    payloads : dict of int to numpy.ndarray
        That raw data as bytes, by number of the initializer; views of ``data``.

    Raises
    ------
    FormatError
        The data is not an ONNX model.
    """
    onnx: Any = require("onnx", extra="onnx")
    decode_error: Any = require("google.protobuf.message", extra="onnx").DecodeError
    if not len(data):
        raise FormatError("the file is empty")
    message, spans = _core.strip_onnx(data, outline)
    try:
        model = onnx.ModelProto.FromString(message)
    except decode_error as error:
        raise FormatError(f"this is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise FormatError("this ONNX model has no graph")
    bytes_of = {
        number: np.frombuffer(memoryview(data), np.uint8, length, start)
        for number, (start, length) in spans.items()
    }
    return model, bytes_of
