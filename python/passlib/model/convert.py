"""Any model that passlib reads, as an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from passlib.model.model import load

__all__ = ["convert"]


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    dialect: str | None = None,
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    types: Mapping[str, Any] | None = None,
    **options: Any,
) -> None:
    """Read a model and write it as ONNX, checked by ONNX.

    Parameters
    ----------
    src : path-like
        A model of any dialect, as `passlib.load` takes it.
    dst : path-like
        The ONNX file; replaced as a whole, or left as it was.
    dialect : str, optional
        The family of models, by default found out from the content.
    shapes : mapping of str to shape, optional
        Shapes of inputs, where the model does not say them; see `Model.to_onnx`.
    types : mapping of str to dtype, optional
        Their element types.
    **options
        Of the dialect's reader, such as ``epoch`` for MXNet.

    Raises
    ------
    FormatError
        The file is damaged, or of no known dialect.
    GraphError
        Shapes contradict the graph, or that of an input is not known.
    UnsupportedError
        Something has no faithful lowering.
    PasslibError
        The packages ``onnx`` and ``onnxruntime`` are absent.
    """
    load(src, dialect, **options).to_onnx(dst, shapes, types)
