"""MXNet's operators as functions that make symbols, by namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passlib.mxnet.schema.calls import INTERNAL, Namespace, operator_names
from passlib.mxnet.symbol import composition as functions
from passlib.mxnet.symbol import control_flow, sampling
from passlib.mxnet.symbol.symbol import Symbol


def operator(name: str, namespace: str = "") -> Callable[..., Symbol]:
    """Return the function that applies an operator; see `functions.operator`.

    Raises
    ------
    AttributeError
        The namespace has no such operator.
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
