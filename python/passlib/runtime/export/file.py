"""Writing lowered models as ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from passlib.dialects.onnx.soundness import unsafe_to_infer
from passlib.dialects.onnx.writing.assembly import data_left_behind, folders_of, mark
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.files.regular import Save, check_path, free_name, written_from
from passlib.lowering import Lowered
from passlib.lowering.builder import OPSET
from passlib.runtime.export.opset import at_opset

_INLINE_LIMIT = 3 << 29
"""Weights of more bytes than this go to a file of their own: a protobuf message ends at 2 GiB."""


def save_onnx(lowered: Lowered, path: str | Path, opset: int = OPSET) -> None:
    """Write a lowered model as an ONNX file, and check it.

    Weights up to 1.5 GiB go into the file; larger ones into ``<path>.data`` next to it. An
    existing file stays as it is if this fails.

    Parameters
    ----------
    lowered : Lowered
    path : str or Path
    opset : int
        Version of ONNX's operator set, from 13 on.

    Raises
    ------
    FormatError
        The path is one that no file has, or leads to something other than a file.
    UnsupportedError
        A node needs a newer version of the operator set.
    PasslibError
        The ONNX checker objects to the model.
    """
    onnx: Any = require("onnx", extra="onnx")
    target = check_path(path, writing=True)
    model = type(lowered.model)()
    model.CopyFrom(lowered.model)
    read = [value for value in model.graph.input if value.name not in lowered.unread]
    del model.graph.input[:]
    model.graph.input.extend(read)
    at_opset(model, opset, lowered.source_of)
    large = sum(array.nbytes for array in lowered.weights.values()) > _INLINE_LIMIT
    inferable = unsafe_to_infer(lowered.model) is None
    folders = folders_of(target)
    with (
        written_from(lowered.weights.values()),
        Save(target, left=lambda: data_left_behind(target, folders)) as save,
    ):
        if large:
            data = free_name(target, "data")
            partial = save.replace(data, free=True)
            _write_data(lowered, model, partial)
        else:
            _inline(lowered, model)
        file = save.replace(target)
        file.write_bytes(model.SerializeToString())
        checker: Any = require("onnx.checker", extra="onnx")
        try:
            checker.check_model(str(file), full_check=inferable)
        except (
            checker.ValidationError,
            onnx.shape_inference.InferenceError,
            RuntimeError,
            ValueError,
            MemoryError,
        ) as error:
            raise PasslibError(f"{target}: the ONNX checker objects: {error}") from error
        if large:
            # The checker had to find the data under its temporary name.
            _move_data(model, data.name)
            mark(partial, data, target)
            file.write_bytes(model.SerializeToString())


def _inline(lowered: Lowered, model: Any) -> None:
    """Put the weights into the model."""
    for tensor in model.graph.initializer:
        if tensor.name in lowered.weights:
            array = np.ascontiguousarray(lowered.weights[tensor.name])
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def _write_data(lowered: Lowered, model: Any, path: Path) -> None:
    """Write weights one after the other, each at a multiple of 4096 so that it can be mapped."""
    with path.open("wb") as file:
        for tensor in model.graph.initializer:
            if tensor.name not in lowered.weights:
                continue
            array = lowered.weights[tensor.name]
            file.write(bytes(-file.tell() % 4096))
            offset = file.tell()
            np.ascontiguousarray(array).tofile(file)
            tensor.ClearField("external_data")
            for key, text in (
                ("location", path.name),
                ("offset", str(offset)),
                ("length", str(array.nbytes)),
            ):
                tensor.external_data.add(key=key, value=text)


def _move_data(model: Any, name: str) -> None:
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = name
