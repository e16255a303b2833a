"""Values that depend on constants only, as ONNX Runtime computes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from passlib._core import Edit, EditableNode, EditableValue, compute
from passlib.arrays import dtypes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import PasslibError
from passlib.library.python import Graph
from passlib.passes.rulebook import allocate, new_edit
from passlib.passes.standard.facts.nodes import Model

Array: TypeAlias = np.ndarray[Any, Any]

_MOST_STEPS: Final = 1000
"""Operators on the way to one value."""

_MOST_ELEMENTS: Final = 1 << 20
"""The limit for each array: a chain of Concat could double its size again and again."""


def _core_result(
    model: Model, value: EditableValue, known: dict[EditableValue, Array]
) -> Array | None:
    """Compute a value exactly as ONNX Runtime does, of operators that the core computes.

    None for others, and for large arrays. ``known``: results so far, which grow.
    """
    pending = [value]
    for _ in range(_MOST_STEPS):
        if not pending:
            break
        current = pending[-1]
        array = known.get(current)
        if array is None:
            array = model.array(current)
        if array is None:
            inputs = current.node.inputs
            missing = [each for each in inputs if each not in known]
            if missing and current.node.is_variable:
                return None
            if missing:
                pending += missing
                continue
            array = _result(current.node, [known[each] for each in inputs])
            if array is None:
                return None
        known[current] = array
        pending.pop()
    # Memory of its own: other passes write to weights.
    return known[value].copy(order="C") if value in known else None


def _result(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    codes = [dtypes.code_or_none(each.dtype) for each in inputs]
    if not inputs or sum(each.size for each in inputs) > _MOST_ELEMENTS:
        return None
    given = [
        (np.asarray(each, each.dtype.newbyteorder("="), order="C"), code)
        for each, code in zip(inputs, codes, strict=True)
        if code is not None
    ]
    return compute(node, given, _array) if len(given) == len(inputs) else None


def _array(shape: list[int], code: int) -> Array | None:
    return allocate(shape, code) if math.prod(shape) <= _MOST_ELEMENTS else None


_REPRESENTABLE = frozenset(ELEMENT_TYPES.values())


def computed(graph: Graph, values: Sequence[EditableValue]) -> list[np.ndarray[Any, Any] | None]:
    """Compute values that depend on no input of the model; None for each that fails.

    ONNX Runtime runs once for all of them, without optimization, so that each number equals the
    operator's result in the model. It does not run for what the core computes.
    """
    model = Model(graph) if graph.dialect == "onnx" else None
    known: dict[EditableValue, Array] = {}
    found = [None if model is None else _core_result(model, value, known) for value in values]
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


def edit_of(graph: Graph) -> Edit:
    """Return the core's view of a graph, which lasts as long as the graph.

    Afterwards weights may be changed by the core only, which does not see ``graph.args``.
    """
    if graph.edit is None:
        graph.edit = new_edit(graph, fold)
    return graph.edit


def fold(graph: Graph, nodes: Sequence[EditableNode]) -> bool:
    """Replace operators on constants by their results; return whether any was."""
    values = [node.outputs[0] for node in nodes]
    model = Model(graph)
    found = False
    for value, array in zip(values, computed(graph, values), strict=True):
        if array is None:
            continue
        model.replace(value.node, model.add_constant(f"{value.node.name}_value", array))
        found = True
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
