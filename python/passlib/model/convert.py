"""Conversion of models of any dialect to ONNX files."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from typing import Any

from passlib.dialects import find
from passlib.dialects.table import check_target
from passlib.errors import InputError
from passlib.model.inputs import without_weights
from passlib.model.loading import load
from passlib.model.model import Model


def convert(
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    dialect: str | None = None,
    *,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    types: Mapping[str, Any] | None = None,
    opset: int | None = None,
    weights: bool = True,
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
    opset : int, optional
        Version of ONNX's operator set; see `Model.to_onnx`.
    weights : bool
        Refuse a model whose weights are not found, instead of making inputs of them. Those with
        a shape in ``shapes`` are inputs.
    **options
        Options of the dialect's reader, such as ``params`` and ``epoch`` for MXNet.

    Raises
    ------
    TypeError
        Shapes or types are not mappings of these.
    FormatError
        The file is damaged, or of no known dialect.
    GraphError
        Shapes contradict the graph, or the shape of an input is unknown.
    UnsupportedError
        Something in the graph has no faithful lowering or no form in the version, or the target has
        the suffix of another format.
    InputError
        The weights are not found.
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
    <Model onnx: inputs x float32 (1, 3); outputs y_output; 1 operator, 0 weights of 0 elements>
    """
    # Before a model is read that may be large.
    target = check_target(dst, find("onnx"))
    model = load(src, dialect, **options)
    if weights:
        _require_weights(model, src, shapes or {})
    model.to_onnx(target, shapes, types, opset)


def _require_weights(model: Model, src: str | os.PathLike[str], inputs: Container[str]) -> None:
    family = find(model.dialect)
    if model.args or model.aux or not family.weight_suffixes:
        return
    names = model.symbol.list_inputs()
    parameters = family.parameters_among(model.symbol.graph, set(names))
    missing = [name for name in names if name in parameters and name not in inputs]
    if missing:
        what = without_weights(family, missing, os.fspath(src))
        raise InputError(
            f"{os.fspath(src)}: {what}; give one with params='...' (--params) or epoch=N "
            "(--epoch), or make inputs of them with weights=False (--no-weights)"
        )
