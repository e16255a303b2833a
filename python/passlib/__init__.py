"""Compiled graph passes for serialized models.

import passlib as pl
pl.library.load("libpass.so")
sym = pl.sym.load("model-symbol.json")
sym.optimize_for("myPass").save("optimized-symbol.json")
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from passlib.files.installation import checked_version as _checked_version
from passlib.files.module_names import also as _also
from passlib.files.on_demand import hand_in as _hand_in
from passlib.training import autograd
from passlib.training import modules as _training_modules

if _TYPE_CHECKING:
    from passlib import (
        attribute,
        base,
        context,
        executor,
        gluon,
        initializer,
        library,
        model,
        name,
        nd,
        nn,
        passes,
        random,
        symbol,
        test_utils,
        util,
        viz,
    )
    from passlib import initializer as init
    from passlib import nd as ndarray
    from passlib import random as rnd
    from passlib import symbol as sym
    from passlib import viz as visualization
    from passlib.arrays.context import Context, cpu, cpu_pinned, current_context, gpu
    from passlib.arrays.shape_mode import ShapeMode as np_shape  # noqa: N813 (MXNet's name)
    from passlib.arrays.shape_mode import is_np_shape, set_np_shape
    from passlib.dialects import Problem
    from passlib.errors import (
        FormatError,
        GraphError,
        InputError,
        InternalError,
        LoadError,
        OperatorError,
        PassError,
        PasslibError,
        PassResultError,
        PatternError,
        PipelineError,
        UnsoundFileError,
        UnsupportedError,
    )
    from passlib.errors import PasslibError as MXNetError
    from passlib.files.installation import get_cmake_dir, get_include
    from passlib.files.limits import limits
    from passlib.graph.node import Entry, Node
    from passlib.graph.scope import AttrScope
    from passlib.library import Library
    from passlib.model import Model, load
    from passlib.model.convert import convert
    from passlib.model.simplify import simplify
    from passlib.model.validate import validate
    from passlib.passes import Graph, Match, Pipeline, find, graph_pass, rewrite, why
    from passlib.symbol import Symbol

__all__ = [
    "AttrScope",
    "Context",
    "Entry",
    "FormatError",
    "Graph",
    "GraphError",
    "InputError",
    "InternalError",
    "Library",
    "LoadError",
    "MXNetError",
    "Match",
    "Model",
    "Node",
    "OperatorError",
    "PassError",
    "PassResultError",
    "PasslibError",
    "PatternError",
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
    "contrib",
    "convert",
    "cpu",
    "cpu_pinned",
    "current_context",
    "executor",
    "find",
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
    "rewrite",
    "rnd",
    "set_np_shape",
    "simplify",
    "sym",
    "symbol",
    "test_utils",
    "util",
    "validate",
    "visualization",
    "viz",
    "why",
]

__version__ = _checked_version()

# Modules that only say that passlib does not train, and modules that MXNet has under two names.
for _name, _module in {"autograd": autograd, **_training_modules}.items():
    globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = _module
_also(f"{__name__}.ndarray", f"{__name__}.nd")

# What low rooms get from high ones, which they must not know.
_hand_in("methods of arrays", lambda: _importlib.import_module(f"{__name__}.nd"))
_hand_in(
    "standard passes in Python", lambda: _importlib.import_module(f"{__name__}.passes.standard")
)
_hand_in(
    "compiled standard passes",
    lambda: _importlib.import_module(f"{__name__}.library").load_standard(),
)

_RENAMED = {"ndarray": "nd", "rnd": "random", "sym": "symbol"}

_HOMES = {
    "arrays.context": "Context cpu cpu_pinned current_context gpu",
    "arrays.shape_mode": "is_np_shape set_np_shape",
    "dialects": "Problem",
    "errors": """
        FormatError GraphError InputError InternalError LoadError OperatorError PassError
        PassResultError PasslibError PatternError PipelineError UnsoundFileError UnsupportedError
    """,
    "files.installation": "get_cmake_dir get_include",
    "files.limits": "limits",
    "graph.node": "Entry Node",
    "graph.scope": "AttrScope",
    "library": "Library",
    "model": "Model load",
    "model.convert": "convert",
    "model.simplify": "simplify",
    "model.validate": "validate",
    "passes": "Graph Match Pipeline find graph_pass rewrite why",
    "symbol": "Symbol",
}
"""The names that each module gives, which is imported when one of them is first used."""

_ROOMS = ("arrays", "dialects", "files", "graph", "lowering", "runtime", "training", "workbench")
"""Modules that are no public names, and that ``passlib.<name>`` imports nevertheless."""

_ELSEWHERE = {name: (home, name) for home, names in _HOMES.items() for name in names.split()} | {
    "MXNetError": ("errors", "PasslibError"),
    "np_shape": ("arrays.shape_mode", "ShapeMode"),
}


def __getattr__(name: str) -> _Any:
    if name not in __all__ and name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _ELSEWHERE:
        home, own = _ELSEWHERE[name]
        found = getattr(_importlib.import_module(f"{__name__}.{home}"), own)
    else:
        found = _importlib.import_module(f"{__name__}.{_RENAMED.get(name, name)}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    dunder = (key for key in globals() if key.startswith("__") and key.endswith("__"))
    return sorted([*__all__, *dunder])
