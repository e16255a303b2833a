"""Compiled graph passes for serialized models.

import passlib as pl
pl.library.load("libpass.so")
sym = pl.sym.load("model-symbol.json")
sym.optimize_for("myPass").save("optimized-symbol.json")
"""

from __future__ import annotations

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from passlib import (
    attribute,
    base,
    context,
    executor,
    library,
    model,
    name,
    nd,
    passes,
    random,
    symbol,
    util,
)
from passlib import nd as ndarray
from passlib import random as rnd
from passlib import symbol as sym
from passlib.arrays.context import Context, cpu, cpu_pinned, current_context, gpu
from passlib.arrays.shape_mode import ShapeMode as np_shape  # noqa: N813 (MXNet's name)
from passlib.arrays.shape_mode import is_np_shape, set_np_shape
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
    PipelineError,
    UnsoundFileError,
    UnsupportedError,
)
from passlib.errors import PasslibError as MXNetError
from passlib.files.installation import checked_version as _checked_version
from passlib.files.installation import get_cmake_dir, get_include
from passlib.files.limits import limits
from passlib.graph.node import Entry, Node
from passlib.graph.scope import AttrScope
from passlib.library import Library
from passlib.model import Model, load
from passlib.model.convert import convert
from passlib.model.validate import validate
from passlib.passes import Graph, Pipeline, graph_pass
from passlib.symbol import Symbol
from passlib.training import autograd
from passlib.training import modules as _training_modules

if _TYPE_CHECKING:
    from passlib import gluon, init, initializer, nn, test_utils, visualization, viz

__all__ = [
    "AttrScope",
    "Context",
    "Entry",
    "FormatError",
    "Graph",
    "GraphError",
    "InternalError",
    "Library",
    "LoadError",
    "MXNetError",
    "Model",
    "Node",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "Pipeline",
    "PipelineError",
    "Problem",
    "Symbol",
    "UnsoundFileError",
    "UnsupportedError",
    "attribute",
    "autograd",
    "base",
    "context",
    "convert",
    "cpu",
    "cpu_pinned",
    "current_context",
    "executor",
    "get_cmake_dir",
    "get_include",
    "gluon",
    "gpu",
    "graph_pass",
    "init",
    "initializer",
    "is_np_shape",
    "library",
    "limits",
    "load",
    "model",
    "name",
    "nd",
    "ndarray",
    "nn",
    "np_shape",
    "passes",
    "random",
    "rnd",
    "set_np_shape",
    "sym",
    "symbol",
    "test_utils",
    "util",
    "validate",
    "visualization",
    "viz",
]

__version__ = _checked_version()

# Modules that MXNet has under two names, and those that only say that passlib does not train.
for _name, _module in {"autograd": autograd, "ndarray": nd, **_training_modules}.items():
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module

# Few programs need these, so they are imported at first use.
_later = ("gluon", "init", "initializer", "nn", "test_utils", "visualization", "viz")


def __getattr__(name: str) -> _Any:
    if name in _later:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    dunder = (key for key in globals() if key.startswith("__") and key.endswith("__"))
    return sorted([*__all__, *dunder])
