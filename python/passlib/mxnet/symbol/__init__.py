"""Symbols: graphs as Python holds them, and the functions that make them.

``passlib.sym`` is this module. It also has every operator of MXNet 1.9.1 as a function:
``sym.Convolution(data, kernel=(3, 3), num_filter=8)``.
"""

from __future__ import annotations

from typing import Any

from passlib.mxnet.schema.calls import operator_names
from passlib.mxnet.symbol.creation import (
    arange,
    eye,
    full,
    histogram,
    hypot,
    linspace,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    var,
    zeros,
)
from passlib.mxnet.symbol.creation import group as Group  # noqa: N812 (MXNet's name)
from passlib.mxnet.symbol.namespaces import (
    contrib,
    image,
    linalg,
    load,
    load_json,
    op,
    operator,
    random,
    sparse,
)
from passlib.mxnet.symbol.namespaces import internal as _internal  # noqa: F401 (MXNet's name)
from passlib.mxnet.symbol.symbol import Symbol
from passlib.mxnet.training import NUMPY_MODULES, modules

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "contrib",
    "eye",
    "full",
    "histogram",
    "hypot",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "op",
    "pow",
    "power",
    "random",
    "sparse",
    "split_v2",
    "var",
    "zeros",
]

Variable = var


def __getattr__(name: str) -> Any:
    return modules[name] if name in NUMPY_MODULES else operator(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *operator_names()})
