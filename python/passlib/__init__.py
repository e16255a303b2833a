"""Compiled graph passes for serialized models.

import passlib as pl
pl.library.load("libpass.so")
sym = pl.sym.load("model-symbol.json")
sym.optimize_for("myPass").save("optimized-symbol.json")
"""

from __future__ import annotations

from importlib.metadata import version as _version

from passlib import attribute, context, executor, gluon, library, model, nd, nn, random, symbol
from passlib import naming as name
from passlib import symbol as sym
from passlib.attribute import AttrScope
from passlib.context import Context, cpu, current_context, gpu
from passlib.convert import convert
from passlib.errors import (
    FormatError,
    GraphError,
    LoadError,
    OperatorError,
    PassError,
    PasslibError,
    PassResultError,
    UnsoundFileError,
    UnsupportedError,
)
from passlib.model import Model, load
from passlib.validate import validate

__all__ = [
    "AttrScope",
    "Context",
    "FormatError",
    "GraphError",
    "LoadError",
    "Model",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "UnsoundFileError",
    "UnsupportedError",
    "attribute",
    "context",
    "convert",
    "cpu",
    "current_context",
    "executor",
    "gluon",
    "gpu",
    "library",
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

__version__ = _version("graph-passlib")
