"""Models that no pass has changed: they are written as in the file, without naming or ordering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib import _core
from passlib.dialects.onnx.document import Document
from passlib.dialects.onnx.tensors import differing

__all__ = ["arrays_aside", "is_unchanged", "same_params"]


def is_unchanged(
    graph: _core.Graph, document: Document, params: Mapping[str, np.ndarray[Any, Any]]
) -> bool:
    """Whether a graph and its constants are those of the file, in its order.

    Parameters
    ----------
    graph : _core.Graph
    document : Document
    params : mapping of str to numpy.ndarray
        Constants by name; missing ones have the file's elements.
    """
    return graph.equals(document.graph) and _core.same_arrays(dict(params), dict(document.arrays))


def same_params(document: Document, params: Mapping[str, Any]) -> set[str]:
    """Return the names of parameters that equal the file's constant of that name.

    Parameters
    ----------
    document : Document
    params : mapping of str to array
    """
    pairs = []
    names = []
    for tensor in document.main_tensors():
        array = params.get(tensor.name)
        if tensor.array is not None and isinstance(array, np.ndarray):
            pairs.append((array, tensor.array))
            names.append(tensor.name)
    changed = differing(pairs)
    return {name for position, name in enumerate(names) if position not in changed}


def arrays_aside(document: Document) -> tuple[dict[int, np.ndarray[Any, Any]], dict[int, bool]]:
    """Return the arrays that are not in the messages of an unchanged model.

    Returns
    -------
    arrays : dict of int to numpy.ndarray
        By number of the initializer.
    external : dict of int to bool
        Those of them that are in another file; False for all, since none has changed.
    """
    arrays, external = {}, {}
    for tensor in document.main_tensors():
        if tensor.array is not None and (tensor.detached or tensor.external):
            arrays[tensor.order] = tensor.array
            if tensor.external:
                external[tensor.order] = False
    return arrays, external
