"""Transposes next to operators that add and remove axes of size 1."""

from __future__ import annotations

import numpy as np

from passlib._core import EditableNode
from passlib.passes.standard.facts.nodes import Model, can_replace, operator
from passlib.passes.standard.facts.rules.contents import axes_of
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.facts.views import permutation

_KINDS = ("Squeeze", "Transpose", "Unsqueeze")

_NEW = -1
"""Stands for an axis of size 1 that was added."""


def exchange(model: Model, node: EditableNode, shapes: Shapes) -> None:
    """Replace a chain of Transpose, Squeeze and Unsqueeze by one of each at most, if it is longer.

    Parameters
    ----------
    model : Model
    node : EditableNode
        The last of them.
    shapes : Shapes
    """
    chain = _chain(node)
    source = chain[-1].inputs[0] if chain else None
    rank = shapes.rank(source)
    if source is None or rank is None:
        return
    axes: list[int] | None = list(range(rank))
    for each in reversed(chain):
        axes = None if axes is None else _after(each, axes, shapes)
    if axes is None:
        return
    kept = sorted(axis for axis in axes if axis != _NEW)
    places = [place for place, axis in enumerate(axes) if axis != _NEW]
    order = [place if axis == _NEW else places[kept.index(axis)] for place, axis in enumerate(axes)]
    steps = [
        ("Squeeze", "axes", [axis for axis in range(rank) if axis not in kept]),
        ("Unsqueeze", "axes", [place for place, axis in enumerate(axes) if axis == _NEW]),
        ("Transpose", "perm", [] if order == sorted(order) else order),
    ]
    steps = [step for step in steps if step[2]]
    if len(steps) >= len(chain) or (not steps and not can_replace(node, source)):
        return
    value = source
    for op, key, numbers in steps:
        inputs, attributes = [value], {key: numbers}
        if key == "axes" and model.opset >= 13:
            listed = model.add_constant(f"{node.name}_axes", np.array(numbers, np.int64))
            inputs, attributes = [value, listed], {}
        if op == steps[-1][0]:
            value = model.add_like(node.outputs[0], op, inputs, attributes)
        else:
            value = model.add(f"{node.name}_{op.lower()}", op, inputs, attributes).outputs[0]
    model.replace(node, value)


def _chain(node: EditableNode) -> list[EditableNode]:
    """Return the operators of these kinds that end in one, the last first; none without Transpose.

    Nothing else uses what is between them.
    """
    found: list[EditableNode] = []
    while operator(node) in _KINDS and not node.control_deps:
        found.append(node)
        value = node.inputs[0]
        if not value.only_use or value.is_output:
            break
        node = value.node
    return found if any(operator(each) == "Transpose" for each in found) else []


def _after(node: EditableNode, axes: list[int], shapes: Shapes) -> list[int] | None:
    """Return where the axes of the first value are in the result of an operator."""
    if operator(node) == "Transpose":
        order = permutation(node, len(axes))
        return [axes[place] for place in order] if len(order) == len(axes) else None
    listed = axes_of(node, shapes)
    if not listed:
        return None
    rank = len(axes) + (len(listed) if operator(node) == "Unsqueeze" else 0)
    chosen = {axis % rank for axis in listed if -rank <= axis < rank}
    if len(chosen) != len(listed):
        return None
    if operator(node) == "Squeeze":
        return [axis for place, axis in enumerate(axes) if place not in chosen]
    rest = iter(axes)
    return [_NEW if place in chosen else next(rest) for place in range(rank)]
