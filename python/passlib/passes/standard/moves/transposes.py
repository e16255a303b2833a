"""cancelTransposes: merges, cancels and moves Transposes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, can_replace, given, integers, operator
from passlib.passes.standard.facts.shapes import Quantity, Shapes, axes_of, product
from passlib.passes.standard.families import moves
from passlib.passes.standard.moves.sinking import THROUGH, sink_transposes

_KINDS = ("Squeeze", "Transpose", "Unsqueeze")

_NEW = -1
"""Stands for an axis of size 1 that was added."""


def exchange(model: Model, node: EditableNode, shapes: Shapes) -> None:
    """Replace a chain of Transpose, Squeeze and Unsqueeze by one of each at most, if it is longer.

    Parameters
    ----------
    node : EditableNode
        The last of them.
    """
    chain = _chain(node, shapes)
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


def _is_link(node: EditableNode, shapes: Shapes) -> bool:
    """Whether a node is an operator of these kinds with known axes."""
    kind = operator(node)
    known = kind == "Transpose" or (kind in _KINDS and bool(axes_of(node, shapes)))
    return known and not node.control_deps


def _ends_a_chain(node: EditableNode, shapes: Shapes) -> bool:
    value = node.outputs[0]
    use = None if value.is_output else value.only_use
    return use is None or use[1] != 0 or not _is_link(use[0], shapes)


def _chain(node: EditableNode, shapes: Shapes) -> list[EditableNode]:
    """Return the operators of these kinds that end in one, the last first; none without Transpose.

    Nothing else uses what is between them.
    """
    found: list[EditableNode] = []
    while _is_link(node, shapes):
        found.append(node)
        value = node.inputs[0]
        if not value.only_use or value.is_output:
            break
        node = value.node
    return found if any(operator(each) == "Transpose" for each in found) else []


def _after(node: EditableNode, axes: list[int], shapes: Shapes) -> list[int] | None:
    """Return where the axes of the first value are in the result of an operator."""
    if operator(node) == "Transpose":
        order = _permutation(node, len(axes))
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


@graph_pass(
    name="cancelTransposes",
    dialects=["onnx", "mxnet", "nnvm"],
    exact=True,
    triggers=["Transpose", "transpose"],
    joins=Joins(
        ["clean", "simplify"],
        after="mergeReshapes",
        rounding={"empty_errors": False, "reorder_sums": True},
    ),
)
def cancel_transposes(
    graph: Graph, *, empty_errors: bool = True, reorder_sums: bool = False
) -> None:
    """Merge successive Transposes, also across a Reshape that merges axes.

    Parameters
    ----------
    empty_errors : bool
        Keep a Reshape with -1 and an open dimension, which fails if this dimension is 0.
    reorder_sums : bool
        Also move a Transpose into a reduction, which changes the order of its sums and thus their
        rounding.
    """
    if graph.dialect != "onnx":
        moves.cancel_transposes(graph)
        return
    model = Model(graph)
    pairs = [node for node in graph.sorted("Transpose") if _ends_a_pair(node)]
    if pairs:
        # The second would go on otherwise, and leave the first one between a layer and what
        # ONNX Runtime makes one with it.
        _compose_all(model, pairs, Shapes(model))
    sink_transposes(model, reorder_sums)
    shapes = Shapes(model)
    for node in graph.sorted("Reshape"):
        if node not in model.gone and not node.control_deps:
            _split_again(model, node, shapes, empty_errors)
    _compose_all(model, graph.sorted("Transpose"), shapes)
    for node in [node for node in graph.sorted(*_KINDS) if _ends_a_chain(node, shapes)]:
        if node not in model.gone:
            exchange(model, node, shapes)


def _ends_a_pair(node: EditableNode) -> bool:
    """Whether a Transpose follows another one that no third one can meet."""
    if operator(node.inputs[0].node) != "Transpose":
        return False
    return operator(node.inputs[0].node.inputs[0].node) not in THROUGH


def _compose_all(model: Model, nodes: Sequence[EditableNode], shapes: Shapes) -> None:
    for node in nodes:
        if node not in model.gone and not node.control_deps:
            _compose(model, node, shapes)


def _compose(model: Model, node: EditableNode, shapes: Shapes) -> None:
    """Let a Transpose take what the Transpose before it takes."""
    before = node.inputs[0].node
    result = node.outputs[0]
    if operator(before) != "Transpose" or before.control_deps:
        return
    source = before.inputs[0]
    rank = shapes.rank(source)
    if rank is None:
        return
    first, second = _permutation(before, rank), _permutation(node, rank)
    if len(first) != rank or len(second) != rank:
        return
    order = [first[axis] for axis in second]
    if order != sorted(order):
        model.replace(node, model.add_like(result, "Transpose", [source], {"perm": order}))
    elif result.is_output and (source.node.is_variable or source.is_output):
        # An output that is an input, or another output, needs an operator.
        if shapes.runs("Identity", result):
            model.replace(node, model.add_like(result, "Identity", [source]))
    else:
        model.replace(node, source)


def _split_again(model: Model, node: EditableNode, shapes: Shapes, empty_errors: bool) -> None:
    """Replace a Transpose of merged axes between two Reshapes by a Transpose of all axes."""
    turn = node.inputs[0].node
    merge = turn.inputs[0].node if operator(turn) == "Transpose" else turn
    if operator(merge) != "Reshape" or turn.control_deps or merge.control_deps or turn == merge:
        return
    source = merge.inputs[0]
    have, merged = shapes.shape(source), shapes.shape(merge.outputs[0])
    want = shapes.shape(node.outputs[0])
    if have is None or merged is None or want is None:
        return
    if empty_errors and not all(_never_fails(item, shapes) for item in (merge, node)):
        return
    groups = _groups(have, merged)
    order = _permutation(turn, len(merged))
    if groups is None or len(order) != len(groups):
        return
    axes = [axis for place in order for axis in groups[place]]
    if tuple(have[axis] for axis in axes) != want or axes == sorted(axes):
        return
    result = node.outputs[0]
    model.replace(node, model.add_like(result, "Transpose", [source], {"perm": axes}))


def _never_fails(reshape: EditableNode, shapes: Shapes) -> bool:
    """Whether a Reshape works for sizes of 0 as for others."""
    target: EditableValue | None = given(reshape, 1)
    content = shapes.content(target)
    if content is None:
        return False
    has_rest = any(item == -1 for item in content.flat)
    return not has_rest or all(isinstance(item, int) and item != 0 for item in content.flat)


def _permutation(node: EditableNode, rank: int) -> list[int]:
    stated = integers(node, "perm")
    return list(range(rank))[::-1] if stated is None else stated


def _groups(sizes: tuple[Quantity, ...], merged: tuple[Quantity, ...]) -> list[list[int]] | None:
    """Return for each merged size the axes whose product it is."""
    groups: list[list[int]] = []
    axis = 0
    for size in merged:
        group: list[int] = []
        total: Quantity = 1
        while axis < len(sizes) and (total != size or not group):
            if not group and size == 1 and sizes[axis] != 1:
                break
            total = total * sizes[axis]
            group.append(axis)
            axis += 1
        if total != size or product([sizes[place] for place in group]) != size:
            return None
        groups.append(group)
    while axis < len(sizes) and groups and sizes[axis] == 1:
        groups[-1].append(axis)
        axis += 1
    return groups if axis == len(sizes) else None
