"""ONNX files as graphs with weights."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.document import Document, Reference
from passlib.dialects.onnx.external import Folder
from passlib.dialects.onnx.keys import DOCUMENT
from passlib.dialects.onnx.parsing import map_file
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.dialects.protocol import ModelData
from passlib.errors import FormatError, UnsupportedError


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
    return _read(data, Path("model.onnx"), has_folder=False)


def _read(data: _core.FileMapping | bytes, path: Path, *, has_folder: bool = True) -> ModelData:
    try:
        file = _core.OnnxFile(data)
        if file.has_external and not has_folder:
            raise UnsupportedError(
                "this ONNX model has data in other files, and bytes have no folder to look in; "
                "load it from its file"
            )
        folder = Folder(path.parent)
        arrays = file.arrays(_dtype_of, _external(file, folder))
    except FormatError as error:
        raise error.within(path if has_folder else "the given bytes") from error
    document = Document(data, path, file, arrays, folder)
    attributes = {
        "ir_version": str(file.ir_version),
        "opset_import": json.dumps(document.imports),
        DOCUMENT: Reference.to(document),
    }
    return ModelData(file.graph, attributes, arrays, {}, document)


def _dtype_of(code: int) -> np.dtype[Any]:
    return dtypes.as_dtype(ELEMENT_TYPES[code])


def _external(file: _core.OnnxFile, folder: Folder) -> list[np.ndarray[Any, Any] | None]:
    """Map the data of constants that is in other files."""
    arrays = []
    for place, kind, dims, stated in file.external():
        tensor = SimpleNamespace(
            data_type=kind,
            dims=dims,
            external_data=[SimpleNamespace(key=key, value=value) for key, value in stated],
        )
        arrays.append(folder.array(tensor, place))
    return arrays
