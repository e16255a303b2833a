"""Nodes of ONNX graphs whose operators belong to loaded libraries; see docs/onnxruntime.md."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.reading import Document
from passlib.dialects.operator_types import Rules

_operators: Final[dict[str, Rules]] = {}


def add(rules: Rules) -> None:
    """Make an operator known; it replaces any other of its name."""
    _operators[rules.name] = rules


def is_known(name: str) -> bool:
    """Whether a loaded library has an operator of this name."""
    return name in _operators


def library_nodes(
    graph: _core.Graph,
    document: Document,
    imports: Mapping[str, int],
    params: dict[str, np.ndarray[Any, Any]],
    given: Mapping[str, tuple[int | None, list[int] | None]],
) -> _core.LibraryNodes | None:
    """Write the nodes of a graph whose operators belong to libraries; None if there are none.

    ``imports``: versions of operator sets. ``given``: ONNX's element types and sizes of variables,
    -1 for unknown ones. Raises `GraphError` if a node does not fit its operator;
    `UnsupportedError` if it has no form in ONNX; `OperatorError` if a library fails.
    """
    if not _operators:
        return None
    operators = {name: rules.core for name, rules in _operators.items()}
    return _core.library_nodes(
        document.file, graph, imports, params, given, operators, sys.stdout.write
    )
