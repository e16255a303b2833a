"""Nodes of ONNX graphs whose operators belong to libraries, as files have them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

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

OPEN: Final = -2
"""Stands for a size that is open although the file states one."""


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
    dtypes = dict(graph.variables_with("__dtype__"))
    for name, text in graph.variables_with("__shape__"):  # as a pass or an edit states them
        if text:
            number, sizes = _core.stated_type(name, dtypes.get(name) or None, text, 0)
            types[name] = (
                number or None,
                sizes and [OPEN if size < 0 else size for size in sizes],
            )
    for name, spec in given.items():
        with suppress(UnsupportedError):  # texts, and elements that no operator of a library takes
            types[name] = _joined(stated(name, spec), types.get(name, (None, None)))
    return _core.library_nodes(
        document.file, graph, imports, params, types, operators, sys.stdout.write
    )


def _joined(fed: _Type, known: _Type) -> _Type:
    """Return the type of a fed value, with the sizes that the graph knows where it has none."""
    code, sizes = fed
    before = known[1]
    if sizes is None or before is None or len(before) != len(sizes):
        return fed
    return code, [old if new < 0 else new for new, old in zip(sizes, before, strict=True)]


def stated(name: str, spec: TypeSpec) -> _Type:
    """Return the type of an input as a number of ONNX and sizes, -1 for unknown ones.

    Raises `UnsupportedError` if ONNX has no tensors of these elements.
    """
    code = None if spec.dtype is None else code_of(spec.dtype, f"input {name!r}")
    if spec.shape is None:
        return code, None
    return code, [-1 if size is None else size for size in spec.shape]
