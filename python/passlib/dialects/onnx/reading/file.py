"""ONNX files, mapped and parsed."""

from __future__ import annotations

import json
import mmap
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from passlib.dialects.onnx import wire
from passlib.dialects.onnx.document import DOCUMENT, Document, Reference
from passlib.dialects.onnx.messages import external_tensors
from passlib.dialects.onnx.reading.levels import LevelReader
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, UnsupportedError
from passlib.files.collector import collection_off
from passlib.files.optional import require
from passlib.files.regular import open_regular

__all__ = ["map_file", "parse_model", "read", "read_bytes"]


def map_file(path: Path) -> mmap.mmap | bytes:
    """Map a file into memory for reading."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size == 0:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def parse_model(
    data: mmap.mmap | bytes,
) -> tuple[Any, dict[int, np.ndarray[Any, Any]], bool]:
    """Parse a serialized model.

    Returns
    -------
    model : onnx.ModelProto
        Without the raw data of its larger weights.
    payloads : dict of int to numpy.ndarray
        That raw data as bytes, by number of the initializer; views of ``data``.
    has_external : bool
        Whether any data may be in other files.

    Raises
    ------
    FormatError
        The data is not an ONNX model.
    """
    onnx: Any = require("onnx", extra="onnx")
    decode_error: Any = require("google.protobuf.message", extra="onnx").DecodeError
    if not len(data):
        raise FormatError("the file is empty")
    message, spans = wire.split(data)
    try:
        model = onnx.ModelProto.FromString(message)
    except decode_error as error:
        raise FormatError(f"this is not an ONNX model: {error}") from None
    if not model.HasField("graph"):
        raise FormatError("this ONNX model has no graph")
    bytes_of = {
        number: np.frombuffer(data, np.uint8, length, start)
        for number, (start, length) in spans.items()
    }
    return model, bytes_of, b"location" in message


def read(path: Path) -> ModelData:
    """Read a model.

    Parameters
    ----------
    path : Path

    Returns
    -------
    ModelData
        Its weights are views of the mapped file and of the files next to it.

    Raises
    ------
    FormatError, GraphError, UnsupportedError
        See `dialects.protocol.Dialect.load`.
    """
    return _read(map_file(path), path)


def read_bytes(data: bytes) -> ModelData:
    """Read a model that is no file: as `read`, but its data cannot be in other files.

    Raises
    ------
    UnsupportedError
        It is.
    """
    model, _, has_external = parse_model(data)
    if has_external and any(external_tensors(model)):
        raise UnsupportedError(
            "this ONNX model has data in other files, and bytes have no folder to look in; load "
            "it from its file"
        )
    return _read(data, Path("model.onnx"))


def _read(data: mmap.mmap | bytes, path: Path) -> ModelData:
    try:
        model, payloads, has_external = parse_model(data)
        document = Document(model, path, has_external)
        with collection_off():
            graph = LevelReader(document, path.parent, payloads).read(model.graph)
        document = replace(document, graph=graph)
    except FormatError as error:
        raise error.within(path) from error
    args = {
        tensor.name: tensor.array for tensor in document.main_tensors() if tensor.array is not None
    }
    return ModelData(graph, _attributes(document), args, {}, document)


def _attributes(document: Document) -> dict[str, str]:
    model = document.model
    imports = {entry.domain: entry.version for entry in model.opset_import}
    return {
        "ir_version": str(model.ir_version),
        "opset_import": json.dumps(imports),
        DOCUMENT: Reference.to(document),
    }
