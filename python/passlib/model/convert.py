"""Conversion of models of any dialect to ONNX files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from passlib.dialects import find
from passlib.dialects.table import check_target
from passlib.lowering.builder import OPSET
from passlib.model.loading import load
from passlib.runtime.export import check_opset


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    dialect: str | None = None,
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    types: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    **options: Any,
) -> None:
    """Read a model and write it as an ONNX file, checked by ONNX.

    Parameters
    ----------
    src : path-like
        A model of any dialect, as for `passlib.load`.
    dst : path-like
        The ONNX file. A failure leaves an existing file unchanged.
    dialect : str, optional
        The family of models, by default recognised by the content.
    shapes, types
        Shapes and element types of inputs that the model does not declare; see `Model.to_onnx`.
    opset : int
        Version of ONNX's operator set, from 13 on.
    **options
        Options of the dialect's reader, such as ``epoch`` for MXNet.

    Raises
    ------
    TypeError
        Shapes or types are not mappings of these.
    FormatError
        The file is damaged, or of no known dialect.
    GraphError
        Shapes contradict the graph, or the shape of an input is unknown.
    UnsupportedError
        Something in the graph has no faithful lowering, or the target has the suffix of another
        format.
    PasslibError
        The packages ``onnx`` and ``onnxruntime`` are not installed.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pl.sym.relu(pl.sym.var("x"), name="y").save(f"{folder}/net-symbol.json")
    ...     pl.convert(f"{folder}/net-symbol.json", f"{folder}/net.onnx", shapes={"x": (1, 3)})
    ...     print(pl.load(f"{folder}/net.onnx"))
    <Model onnx: inputs x float32 (1, 3); outputs y_output; 2 nodes, 0 weights of 0 elements>
    """
    # Before a model is read that may be large.
    target = check_target(dst, find("onnx"))
    check_opset(opset)
    load(src, dialect, **options).to_onnx(target, shapes, types, opset)
