"""Which nodes of a model a runtime refuses."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from passlib.dialects.onnx.reading import map_file, parse_model
from passlib.dialects.onnx.targets import Refusal, Target, refusals
from passlib.errors import UnsupportedError
from passlib.model.loading import AnyModel, as_model


def lint(model: AnyModel, target: str) -> list[Refusal]:
    """Return the nodes of an ONNX model that a runtime refuses, and why.

    A node is refused if the target's table does not have its operator, or not in the operator set
    of the model, or not for its types or ranks. Types and ranks that are not known, such as those
    in bodies of functions, refuse nothing. Operators of libraries that a runtime may load are
    refused unless the table has them.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
    target : str
        ``onnxruntime-cpu``, ``onnxruntime-cuda``, ``tensorrt``, ``opset=N`` for a version of
        ONNX's operator set, or the path of a table, see docs/targets.md.

    Raises
    ------
    UnsupportedError
        There is no such target, or the model is of another dialect.
    FormatError
        The file is no table.

    Examples
    --------
    >>> import onnx, passlib as pl
    >>> graph = "g (float[4] x) => (float[4] y) { y = Gelu(x) }"
    >>> made = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 20]> {graph}')
    >>> for refusal in pl.lint(made, "opset=19"):
    ...     print(refusal)
    y (Gelu): not in operator set 19: Gelu is new in 20
    """
    return lint_with_notes(model, target)[0]


def lint_with_notes(
    model: AnyModel, target: str
) -> tuple[list[Refusal], dict[tuple[str, str], int]]:
    """Return what `lint` returns, and what the target's table notes on accepted nodes.

    Result: the notes as numbers of nodes by operator and text.
    """
    found = Target.load(target)
    loaded = as_model(model)
    if loaded.dialect != "onnx":
        raise UnsupportedError(
            f"lint looks at ONNX models, and this one is of {loaded.dialect}: convert it first, "
            "see `passlib convert`"
        )
    notes: dict[tuple[str, str], int] = {}
    if isinstance(model, (str, os.PathLike)):
        return refusals(parse_model(map_file(Path(model)))[0], found, notes), notes
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        path = Path(folder) / "model.onnx"
        loaded.save(path, durable=False)
        return refusals(parse_model(map_file(path))[0], found, notes), notes
