"""Operators that keep the order of the elements and change the shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib._core import EditableNode, EditableValue, at_least, quotient
from passlib.passes.standard.facts.nodes import Model, integers, operator
from passlib.passes.standard.facts.shapes import Quantity, Shapes, product

_RESHAPING = frozenset(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"))

_OF_ONE = frozenset(("ReduceMax", "ReduceMin"))
"""Reductions that return the only element as it is."""

VIEWS = (*sorted(_RESHAPING | _OF_ONE), "Transpose")
"""Operators that `is_view` may be true of."""

Shape = Sequence[Quantity]


def permutation(node: EditableNode, rank: int) -> list[int]:
    """Return the permutation of a Transpose."""
    stated = integers(node, "perm")
    return list(range(rank))[::-1] if stated is None else stated


def is_view(node: EditableNode, shapes: Shapes) -> bool:
    """Whether the result has the elements of the first input in the same order."""
    name = operator(node)
    if node.is_variable or node.control_deps:
        return False
    if name in _RESHAPING:
        return True
    if name not in _OF_ONE and name != "Transpose":
        return False
    shape = shapes.shape(node.inputs[0])
    if shape is None:
        return False
    if name in _OF_ONE:
        sizes = shapes.shape(node.outputs[0])
        return sizes is not None and _without_ones(shape) == _without_ones(sizes)
    order = [axis for axis in permutation(node, len(shape)) if shape[axis] != 1]
    return order == sorted(order)


def _without_ones(shape: Shape) -> list[Quantity]:
    return [size for size in shape if size != 1]


def reshape_target(source: Shape, wanted: Shape) -> list[int] | None:
    """Return a constant shape for Reshape between two shapes, valid for all open dimensions.

    None if more than one open dimension changes its position.
    """
    found: list[int] = []
    rest: list[Quantity] = []
    for place, size in enumerate(wanted):
        if isinstance(size, int) and (size != 0 or source[place : place + 1] == (0,)):
            found.append(size)
        elif place < len(source) and source[place] == size:
            found.append(0)
        else:
            found.append(-1)
            rest.append(size)
    if not rest:
        return found
    others = [size for size in found if size != -1]
    # With another size of 0 there is no size that -1 could stand for.
    if found.count(-1) != 1 or not all(size > 0 for size in others):
        return None
    same = quotient(product(list(source)), product(list(others))) == rest[0]
    return found if same and at_least(rest[0], 0) else None


def add_view(
    model: Model, value: EditableValue, source: EditableValue, shapes: Shapes
) -> EditableValue | None:
    """Compute a value from another one with the same elements by at most one operator.

    Return ``source`` if the shapes are equal, None if one operator is not enough.
    """
    have, want = shapes.shape(source), shapes.shape(value)
    if have is None or want is None:
        return None
    if have == want:
        return source
    for op, short, long in (("Squeeze", want, have), ("Unsqueeze", have, want)):
        axes = _inserted(short, long)
        if axes is not None and shapes.runs(op, value):
            if model.opset < 13:
                return model.add_like(value, op, [source], {"axes": axes})
            given = model.add_constant(f"{value.node.name}_axes", np.array(axes, np.int64))
            return model.add_like(value, op, [source, given])
    target = reshape_target(have, want)
    if target is None or model.opset < 5 or not shapes.runs("Reshape", value):
        return None
    given = model.add_constant(f"{value.node.name}_shape", np.array(target, np.int64))
    return model.add_like(value, "Reshape", [source, given])


def _inserted(short: Shape, long: Shape) -> list[int] | None:
    """Return the axes of size 1 that the longer shape adds."""
    axes, place = [], 0
    for axis, size in enumerate(long):
        if place < len(short) and short[place] == size:
            place += 1
        elif size == 1:
            axes.append(axis)
        else:
            return None
    return axes if axes and place == len(short) else None
