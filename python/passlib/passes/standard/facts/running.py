"""The values of operators that depend on constants alone, as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib._core import EditableValue
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import PasslibError
from passlib.library.python import Graph
from passlib.passes.standard.facts.movements import moved
from passlib.passes.standard.facts.nodes import Model

_REPRESENTABLE = frozenset(ELEMENT_TYPES.values())


def computed(graph: Graph, values: Sequence[EditableValue]) -> list[np.ndarray[Any, Any] | None]:
    """Compute values.

    ONNX Runtime runs once for all of them, without optimization, so that each number is the one
    that the operator returns in the model. It is left out where elements are only moved.

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
    model = Model(graph) if graph.dialect == "onnx" else None
    found = [None if model is None else moved(model, value) for value in values]
    rest = [place for place, array in enumerate(found) if array is None]
    # A value that fails is found by halves: the others are computed all the same.
    pending = [rest] if rest else []
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
    # It takes the longest of all imports, and many graphs need nothing of it.
    from passlib.runtime.constants import run_constants

    part = graph.plain(values)
    names = part.list_inputs()
    weights = {name: graph.args[name] for name in names if name in graph.args}
    try:
        return run_constants(part, weights)
    except PasslibError:
        return None
