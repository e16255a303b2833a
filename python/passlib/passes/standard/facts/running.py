"""Values that depend on constants only, as ONNX Runtime computes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from passlib._core import Edit, EditableNode, EditableValue
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import PasslibError
from passlib.library.python import Graph
from passlib.passes.rulebook import new_edit
from passlib.passes.standard.facts.nodes import Model, integer, integers, operator

Array: TypeAlias = np.ndarray[Any, Any]

_MOST_STEPS: Final = 1000
"""Operators on the way to one value."""

_MOST_ELEMENTS: Final = 1 << 20
"""The limit for each array: a chain of Concat could double its size again and again."""


def moved(model: Model, value: EditableValue) -> Array | None:
    """Compute a value exactly as ONNX Runtime does, of operators that move or convert elements.

    None for other operators, failing ones, lossy conversions and large arrays.
    """
    known: dict[EditableValue, Array] = {}
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
    rule = _RULES.get(operator(node))
    if rule is None or not inputs or node.num_outputs != 1 or node.control_deps:
        return None
    if sum(each.size for each in inputs) > _MOST_ELEMENTS:
        return None
    return rule(node, inputs)


def _cast(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    stated = node.attrs.get("to", "")
    target = ELEMENT_TYPES.get(int(stated)) if stated.isdecimal() else None
    source = inputs[0]
    if source.dtype.name not in _PLAIN or target not in _PLAIN:
        return None
    with np.errstate(all="ignore"):
        made = source.astype(target)
    if target == "bool" or source.dtype == bool:
        exact = not np.isnan(source).any()
    else:
        # Whole numbers that do not fit, and what is no whole number, depend on the machine.
        exact = np.array_equal(made.astype(source.dtype), source) and _fits(source, made.dtype)
    return made if exact else None


def _fits(array: Array, dtype: np.dtype[Any]) -> bool:
    """Whether integers are within the range of a dtype."""
    if dtype.kind not in "iu" or not array.size:
        return True
    info = np.iinfo(dtype)
    return info.min <= int(array.min()) and int(array.max()) <= info.max


def _identity(node: EditableNode, inputs: Sequence[Array]) -> Array:
    return inputs[0]


def _reshape(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    sizes = inputs[1].tolist() if len(inputs) == 2 and inputs[1].ndim == 1 else None
    # A size of 0 may stand for that of the input.
    if (
        sizes is None
        or 0 in sizes
        or not inputs[0].size
        or sizes.count(-1) > 1
        or min(sizes, default=1) < -1
    ):
        return None
    return _tried(lambda: inputs[0].reshape(sizes))


def _axes(node: EditableNode, inputs: Sequence[Array]) -> tuple[int, ...] | None:
    """Return the axes that an operator states, in an attribute or an input; None if unusual."""
    if len(inputs) == 1:
        stated = integers(node, "axes")
    else:
        stated = inputs[1].tolist() if inputs[1].ndim == 1 else None
    if not stated or len(inputs) > 2 or min(stated) < 0 or len(set(stated)) < len(stated):
        return None
    return tuple(stated)


def _unsqueeze(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    axes = _axes(node, inputs)
    return None if axes is None else _tried(lambda: np.expand_dims(inputs[0], axes))


def _squeeze(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    axes = _axes(node, inputs)
    return None if axes is None else _tried(lambda: np.squeeze(inputs[0], axes))


def _transpose(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    order = integers(node, "perm")
    if order is None or sorted(order) != list(range(inputs[0].ndim)):
        return None
    return np.transpose(inputs[0], order)


def _concat(node: EditableNode, inputs: Sequence[Array]) -> Array | None:
    axis = integer(node, "axis", -1)
    if axis < 0 or any(each.dtype != inputs[0].dtype for each in inputs):
        return None
    return _tried(lambda: np.concatenate(list(inputs), axis))


def _tried(compute: Callable[[], Array]) -> Array | None:
    try:
        return compute()
    except ValueError:  # np.exceptions.AxisError is one
        return None


_PLAIN: Final = frozenset(
    ("bool", "float32", "float64", "int16", "int32", "int64", "int8", "uint16", "uint32", "uint64",
     "uint8")
)  # fmt: skip

_RULES: Final[dict[str, Callable[[EditableNode, Sequence[Array]], Array | None]]] = {
    "Cast": _cast,
    "Concat": _concat,
    "Identity": _identity,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}


_REPRESENTABLE = frozenset(ELEMENT_TYPES.values())


def computed(graph: Graph, values: Sequence[EditableValue]) -> list[np.ndarray[Any, Any] | None]:
    """Compute values that depend on no input of the model; None for each that fails.

    ONNX Runtime runs once for all of them, without optimization, so that each number equals the
    operator's result in the model. It does not run for operators that only move elements.
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


def edit_of(graph: Graph) -> Edit:
    """Return the core's view of a graph, which lasts as long as the graph.

    It is for functions that change weights through the core alone once they have it.
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
