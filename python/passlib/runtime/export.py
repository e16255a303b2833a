"""Writing lowered models as ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from passlib.errors import PasslibError
from passlib.files.atomic import replacing
from passlib.files.optional import require
from passlib.lowering import Lowered

__all__ = ["save_onnx"]

_INLINE_LIMIT = 3 << 29
"""Weights of more bytes than this go to a file of their own: a protobuf message ends at 2 GiB."""


def save_onnx(lowered: Lowered, path: str | Path) -> None:
    """Write a lowered model as an ONNX file, and check it.

    Weights up to 1.5 GiB go into the file; larger ones into ``<path>.data`` next to it. An
    existing file stays as it is if this fails.

    Parameters
    ----------
    lowered : Lowered
    path : str or Path

    Raises
    ------
    PasslibError
        The ONNX checker objects to the model.
    """
    onnx: Any = require("onnx", extra="onnx")
    target = Path(path)
    model = type(lowered.model)()
    model.CopyFrom(lowered.model)
    if sum(array.nbytes for array in lowered.weights.values()) > _INLINE_LIMIT:
        _write_beside(lowered, model, target.with_name(target.name + ".data"))
    else:
        for tensor in model.graph.initializer:
            if tensor.name in lowered.weights:
                array = np.ascontiguousarray(lowered.weights[tensor.name])
                tensor.ClearField("external_data")
                tensor.ClearField("data_location")
                tensor.raw_data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    checker: Any = require("onnx.checker", extra="onnx")
    with replacing(target) as file:
        file.write_bytes(model.SerializeToString())
        try:
            checker.check_model(str(file), full_check=True)
        except (checker.ValidationError, onnx.shape_inference.InferenceError) as error:
            raise PasslibError(f"{target}: the ONNX checker objects: {error}") from error


def _write_beside(lowered: Lowered, model: Any, data: Path) -> None:
    """Write weights one after the other, each at a multiple of 4096 so that it can be mapped."""
    with replacing(data) as path, path.open("wb") as file:
        for tensor in model.graph.initializer:
            if tensor.name not in lowered.weights:
                continue
            array = lowered.weights[tensor.name]
            file.write(bytes(-file.tell() % 4096))
            offset = file.tell()
            np.ascontiguousarray(array).tofile(file)
            tensor.ClearField("external_data")
            for key, text in (
                ("location", data.name),
                ("offset", str(offset)),
                ("length", str(array.nbytes)),
            ):
                tensor.external_data.add(key=key, value=text)
