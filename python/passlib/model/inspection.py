"""Facts about models of any dialect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from passlib import dialects
from passlib.dialects.summary import summary_of
from passlib.model.loading import AnyModel, as_model


def inspect(model: AnyModel) -> dict[str, Any]:
    """Return what a model has, as JSON values; ``passlib inspect --json`` prints the same.

    A file is read, but no graph is made of it for passes.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto

    Returns
    -------
    dict
        ``dialect``; ``inputs`` and ``outputs``, each with ``name``, ``dtype`` and ``shape``, in
        which open dimensions are names or None; ``nodes``; ``operators`` and how often each occurs,
        nested graphs included; ``weights`` and ``weight_bytes``; and what else the dialect
        states, for ONNX ``opsets``, ``ir_version`` and ``producer``, see docs/json.md.

    Raises
    ------
    FormatError, OSError
        See `passlib.load`.

    Examples
    --------
    >>> import passlib as pl
    >>> facts = pl.inspect(pl.Model(pl.sym.relu(pl.sym.var("x"), name="y")))
    >>> facts["operators"], facts["outputs"][0]["name"]
    ({'relu': 1}, 'y_output')
    """
    if isinstance(model, (str, os.PathLike)):
        family = dialects.recognise(model)
        return summary_of(family, family.load(Path(model)))
    found = as_model(model)
    return summary_of(dialects.find(found.dialect), found.data())
