"""Nodes of ONNX graphs whose operators belong to loaded libraries; see docs/onnxruntime.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.reading import Document
from passlib.dialects.onnx.tensors import code_of
from passlib.dialects.operator_types import Rules
from passlib.errors import UnsupportedError
from passlib.lowering.types import TypeSpec

_operators: Final[dict[str, Rules]] = {}


def add(rules: Rules) -> None:
    """Make an operator known; it replaces any other of its name."""
    _operators[rules.name] = rules


def is_known(name: str) -> bool:
    """Whether a loaded library has an operator of this name."""
    return name in _operators


def complete(graph: _core.Graph) -> None:
    """Set the domain of the nodes of libraries' operators that a pass left without one."""
    if _operators:
        _core.claim_library_nodes(graph, _operators.keys())


def library_nodes(
    graph: _core.Graph,
    document: Document,
    imports: Mapping[str, int],
    params: dict[str, np.ndarray[Any, Any]],
    given: Mapping[str, TypeSpec],
) -> _core.LibraryNodes | None:
    """Write the nodes of a graph whose operators belong to libraries; None if there are none.

    ``imports``: versions of operator sets. ``given``: types of variables. Raises `GraphError` if a
    node does not fit its operator; `UnsupportedError` if it has no form in ONNX; `OperatorError` if
    a library fails.
    """
    if not _operators:
        return None
    types = {}
    for name, spec in given.items():
        with suppress(UnsupportedError):  # texts, and elements that no operator of a library takes
            types[name] = stated(name, spec)
    operators = {name: rules.core for name, rules in _operators.items()}
    return _core.library_nodes(
        document.file, graph, imports, params, types, operators, sys.stdout.write
    )


def stated(name: str, spec: TypeSpec) -> tuple[int | None, list[int] | None]:
    """Return the type of an input as a number of ONNX and sizes, -1 for unknown ones.

    Raises `UnsupportedError` if ONNX has no tensors of these elements.
    """
    code = None if spec.dtype is None else code_of(spec.dtype, f"input {name!r}")
    if spec.shape is None:
        return code, None
    return code, [-1 if size is None else size for size in spec.shape]
