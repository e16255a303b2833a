"""Models that no pass has changed: they are written as in the file, without naming or ordering."""

from __future__ import annotations

from typing import Any

import numpy as np

import passlib._core as _core
from passlib.dialects.onnx.document import Document


def is_unchanged(
    graph: _core.Graph,
    document: Document,
    params: dict[str, np.ndarray[Any, Any]],
    omitted: str = "",
) -> bool:
    """Whether a graph and its constants are those of the file, in its order.

    Parameters
    ----------
    graph : _core.Graph
    document : Document
    params : dict of str to numpy.ndarray
        Constants by name; missing ones have the file's elements.
    omitted : str
        Key of an attribute of nodes that does not count.
    """
    return document.file.holds(graph, omitted) and _core.same_arrays(params, document.arrays)
