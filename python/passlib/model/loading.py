"""Reading of models of every dialect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from passlib import dialects
from passlib.errors import FormatError
from passlib.files.regular import memory_named
from passlib.graph.plain import collection_off
from passlib.model.model import Model
from passlib.model.weights import check_weights, is_foreign


def content_of(given: Any) -> bytes | None:
    """Return the bytes of a model that is given by its content; None for a path.

    Raises `TypeError` if it is neither; `FormatError` if a message is too large to be written.
    """
    if isinstance(given, (str, os.PathLike)):
        return None
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    # The package onnx need not be installed to recognise its messages.
    if type(given).__name__ == "ModelProto" and hasattr(given, "SerializeToString"):
        try:
            return bytes(given.SerializeToString())
        except Exception as error:  # protobuf's own kinds differ between its versions
            raise FormatError(
                f"this ModelProto cannot be written as a message, whose limit is 2 GiB: {error}; "
                "save it with external data, and load the file"
            ) from error
    raise TypeError(
        f"a model is read from a path, from bytes or from an onnx.ModelProto, not from "
        f"{type(given).__name__}"
    )


AnyModel = Model | str | os.PathLike[str] | bytes | Any
"""A model, or what `load` reads."""


def as_model(given: AnyModel) -> Model:
    """Return a model as it is; load anything else with `load`."""
    return given if isinstance(given, Model) else load(given)


def load(path: Any, dialect: str | None = None, **options: Any) -> Model:
    """Read a model with its weights.

    Parameters
    ----------
    path : path-like, bytes or onnx.ModelProto
        An ONNX model may also be given by its content. For MXNet ``x-symbol.json``, ``x`` or one
        of its weight files ``x-0000.params``.
    dialect : str, optional
        The family of models; by default recognised by the content.
    **options
        Of the dialect. MXNet has ``epoch``, the epoch whose weights are read (by default the
        last one), and ``params``, a .params, .npz or .safetensors file of any name that replaces
        the weight file next to the symbol.

    Returns
    -------
    Model
        Without weights if there is no weight file.

    Raises
    ------
    FormatError
        A file is damaged, and the message states the file and the place; or it is of no known
        dialect.
    TypeError
        The argument is neither a path nor a model.
    GraphError
        The weights are those of another model.
    OSError
        The model or the epoch does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x"), name="y"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = model.save(f"{folder}/net")
    ...     print(pl.load(f"{folder}/net"))
    <Model mxnet: inputs x; outputs y_output; 1 operator, 0 weights of 0 elements>
    """
    content = content_of(path)
    with collection_off(), memory_named(path if content is None else "the given bytes"):
        if content is not None:
            family = dialects.find("onnx" if dialect is None else dialect)
            data = family.load_bytes(content, **options)
        else:
            family = dialects.recognise(path) if dialect is None else dialects.find(dialect)
            data = family.load(Path(path), **options)
        model = Model.of_data(data, family.name)
        # Files may have arrays that no operator uses; those of another model lack others as well.
        apart = bool(family.weight_suffixes)
        foreign = apart and is_foreign(model.symbol, family, data.args.keys() | data.aux.keys())
        if options.get("params") is not None or foreign:
            check_weights(model.symbol, model.data())
        return model
