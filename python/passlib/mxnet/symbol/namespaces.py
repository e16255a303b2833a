"""Symbols from MXNet's files, and operators as functions that create symbols, by namespace."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from passlib.dialects.table import find, names
from passlib.errors import FormatError
from passlib.files.regular import memory_named, read_regular
from passlib.mxnet.files import SYMBOL_SUFFIX
from passlib.mxnet.reading import CURRENT, read_symbol
from passlib.mxnet.schema.calls import INTERNAL, Namespace, operator_names
from passlib.mxnet.symbol import composition as functions
from passlib.mxnet.symbol import control_flow, sampling
from passlib.mxnet.symbol.symbol import Symbol


def operator(name: str, namespace: str = "") -> Callable[..., Symbol]:
    """Return the function that applies an operator; see `functions.operator`.

    Raises `AttributeError` if the namespace has no such operator.
    """
    return functions.operator(name, namespace, Symbol)


def _namespace(name: str, own: dict[str, Callable[..., Any]] | None = None) -> Namespace:
    return Namespace("sym", name, operator, operator_names, own)


op = _namespace("")
contrib = _namespace(
    "contrib",
    {
        **control_flow.FUNCTIONS,
        "Symbol": Symbol,
        "rand_zipfian": sampling.rand_zipfian,
        "uniform": sampling.FUNCTIONS["uniform"],
    },
)
"""The operators, and the functions that make loops and branches."""
linalg = _namespace("linalg")
sparse = _namespace("sparse")
image = _namespace("image")
internal = _namespace(INTERNAL)
random = _namespace("random", {**sampling.FUNCTIONS, "Symbol": Symbol})
"""The generators by their distribution, and the ``..._like`` operators."""


logger = logging.getLogger(__name__)


def load(fname: str | os.PathLike[str]) -> Symbol:
    """Read a symbol file.

    Raises
    ------
    FormatError
        The file is no symbol; the message has file, line and column.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as mx
    >>> with tempfile.NamedTemporaryFile(suffix="-symbol.json") as file:
    ...     mx.sym.relu(mx.sym.var("x"), name="y").save(file.name)
    ...     print(mx.sym.load(file.name).list_outputs())
    ['y_output']
    """
    path = Path(fname)
    with memory_named(path):
        text = read_regular(path)
        try:
            return load_json(text)
        except FormatError as error:
            raise (_of_another(path) or error.within(path)) from error


def _of_another(path: Path) -> FormatError | None:
    """Return the error for a model of another dialect, which only `passlib.load` reads."""
    if path.name.endswith(SYMBOL_SUFFIX):
        return None  # a damaged symbol, whatever its content resembles
    if find("mxnet").recognises(path):
        return None
    for name in names():
        dialect = find(name)
        if name != "mxnet" and dialect.recognises(path):
            return FormatError(
                f"{path}: this is a model of {dialect.title}, not a symbol file of MXNet; read it "
                f"with passlib.load({os.fspath(path)!r}), whose result has its graph as .symbol"
            )
    return None


def load_json(json_str: str | bytes) -> Symbol:
    """Read a symbol from the text of a symbol file.

    Files of older MXNet versions are upgraded by MXNet's own rules; that is logged.

    Raises
    ------
    FormatError
        The text is no symbol; the message has line and column.

    Examples
    --------
    >>> import passlib as mx
    >>> text = mx.sym.relu(mx.sym.var("x"), name="y").tojson()
    >>> mx.sym.load_json(text).list_arguments()
    ['x']
    """
    graph, attributes, version = read_symbol(json_str)
    if version < CURRENT:
        logger.info("upgraded a symbol saved by MXNet version %d", version)
    return Symbol.of_graph(graph, attributes)
