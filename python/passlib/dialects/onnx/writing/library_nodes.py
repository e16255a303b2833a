"""Nodes of ONNX graphs whose operators belong to libraries, as files have them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.library_nodes import known
from passlib.dialects.onnx.reading import Document
from passlib.dialects.onnx.tensors import code_of
from passlib.errors import UnsupportedError
from passlib.lowering.builder import LIBRARIES
from passlib.lowering.types import TypeSpec

_Type: TypeAlias = "tuple[int | None, list[int] | None]"
"""ONNX's number of an element type, and sizes, -1 for unknown ones."""


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
    operators = known()
    if not operators and LIBRARIES not in imports:
        return None
    types: dict[str, _Type] = {}
    for name, spec in given.items():
        with suppress(UnsupportedError):  # texts, and elements that no operator of a library takes
            types[name] = stated(name, spec)
    return _core.library_nodes(
        document.file, graph, imports, params, types, operators, sys.stdout.write
    )


def stated(name: str, spec: TypeSpec) -> _Type:
    """Return the type of an input as a number of ONNX and sizes, -1 for unknown ones.

    Raises `UnsupportedError` if ONNX has no tensors of these elements.
    """
    code = None if spec.dtype is None else code_of(spec.dtype, f"input {name!r}")
    if spec.shape is None:
        return code, None
    return code, [-1 if size is None else size for size in spec.shape]
