"""The values of operators that depend on constants alone, computed by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib._core import EditableValue
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import PasslibError
from passlib.library.python import Graph
from passlib.runtime.session import run

__all__ = ["computed"]

_REPRESENTABLE = frozenset(ELEMENT_TYPES.values())


def computed(graph: Graph, values: Sequence[EditableValue]) -> list[np.ndarray[Any, Any] | None]:
    """Compute values, all at once.

    ONNX Runtime runs without optimization, so that each number is the one that the operator
    returns in the model.

    Parameters
    ----------
    graph : Graph
    values : sequence of EditableValue
        Values that depend on no input of the model.

    Returns
    -------
    list of numpy.ndarray or None
        None for a value whose computation fails, and for one that cannot be a weight.
    """
    found: list[np.ndarray[Any, Any] | None] = [None] * len(values)
    # A value that fails is found by halves: the others are computed all the same.
    pending = [range(len(values))] if values else []
    while pending:
        places = pending.pop()
        arrays = _run(graph, [values[place] for place in places])
        if arrays is not None:
            for place, array in zip(places, arrays, strict=True):
                if isinstance(array, np.ndarray) and array.dtype.name in _REPRESENTABLE:
                    found[place] = array
        elif len(places) > 1:
            middle = len(places) // 2
            pending += [places[:middle], places[middle:]]
    return found


def _run(graph: Graph, values: Sequence[EditableValue]) -> list[Any] | None:
    part = graph.plain(values)
    names = part.list_inputs()
    weights = {name: graph.args[name] for name in names if name in graph.args}
    try:
        return run(part, {}, weights, optimization="none")
    except PasslibError:
        return None
