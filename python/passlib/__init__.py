"""Compiled graph passes for serialized models.

import passlib as pl
pl.library.load("libpass.so")
sym = pl.sym.load("model-symbol.json")
sym.optimize_for("myPass").save("optimized-symbol.json")
"""

from __future__ import annotations

from passlib import (
    attribute,
    context,
    executor,
    gluon,
    library,
    model,
    name,
    nd,
    nn,
    random,
    symbol,
)
from passlib import symbol as sym
from passlib.arrays.context import Context, cpu, current_context, gpu
from passlib.dialects import Problem
from passlib.errors import (
    FormatError,
    GraphError,
    InternalError,
    LoadError,
    OperatorError,
    PassError,
    PasslibError,
    PassResultError,
    UnsoundFileError,
    UnsupportedError,
)
from passlib.files.installation import checked_version as _checked_version
from passlib.files.installation import get_cmake_dir, get_include
from passlib.files.limits import limits
from passlib.graph.node import Entry, Node
from passlib.graph.scope import AttrScope
from passlib.library import Library
from passlib.model import Model, load
from passlib.model.convert import convert
from passlib.model.validate import validate
from passlib.symbol import Symbol

__all__ = [
    "AttrScope",
    "Context",
    "Entry",
    "FormatError",
    "GraphError",
    "InternalError",
    "Library",
    "LoadError",
    "Model",
    "Node",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "Problem",
    "Symbol",
    "UnsoundFileError",
    "UnsupportedError",
    "attribute",
    "context",
    "convert",
    "cpu",
    "current_context",
    "executor",
    "get_cmake_dir",
    "get_include",
    "gluon",
    "gpu",
    "library",
    "limits",
    "load",
    "model",
    "name",
    "nd",
    "nn",
    "random",
    "sym",
    "symbol",
    "validate",
]

__version__ = _checked_version()


def __dir__() -> list[str]:
    return sorted([*__all__, *(key for key in globals() if key.startswith("__"))])
