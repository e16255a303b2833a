"""removeNoOps: removes operators that return an input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.known import registering
from passlib.passes.standard.facts.nodes import (
    Model,
    can_replace,
    given,
    graphs_within,
    integer,
    integers,
    is_old_broadcast,
    operator,
)
from passlib.passes.standard.facts.rules.contents import whole
from passlib.passes.standard.facts.rules.extents import broadcast
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.families import no_ops


@graph_pass(
    name="removeNoOps",
    dialects=["onnx", "mxnet", "nnvm", "dlprim"],
    exact=True,
    joins=Joins(["clean", "simplify"], after="foldShapes"),
)
def remove_no_ops(graph: Graph, *, signed_zeros: bool = True) -> None:
    """Remove operators that return an input unchanged.

    Parameters
    ----------
    signed_zeros : bool
        Keep the addition of 0.0, which turns -0.0 into 0.0. The addition of -0.0 or an integer 0,
        and the subtraction of 0.0, are removed in any case.
    """
    if graph.dialect != "onnx":
        no_ops.remove_no_ops(graph)
        return
    model = Model(graph)
    shapes = Shapes(model)
    found: list[tuple[EditableNode, EditableValue]] = []
    expanding: set[EditableNode] = set()
    for node in graph.sorted():
        rule = _RULES.get(operator(node))
        if node.is_variable or rule is None or node.control_deps or node in expanding:
            continue
        same = rule(node, shapes, signed_zeros)
        if same is None or not can_replace(node, same):
            continue
        if operator(node) == "Expand" and shapes.shape(same) != shapes.shape(node.outputs[0]):
            # The operators that use it expand instead, so they stay; of two expanded inputs of
            # one operator the first to go leaves it to the second.
            if not expanding.isdisjoint(node.users):
                continue
            expanding.update(node.users)
        found.append((node, same))
    replaced: dict[EditableValue, EditableValue] = {}
    for node, returned in found:
        # The value that one of them returned may have been replaced before.
        same = replaced.get(returned, returned)
        if can_replace(node, same):
            replaced[node.outputs[0]] = same
            model.replace(node, same)
    for node in graph.nodes:
        _clean_nested(node)


def _clean_nested(node: EditableNode) -> None:
    """Remove Identity from the nested graphs of a node."""
    for graph in graphs_within(node):
        for inner in graph.sorted():
            if operator(inner) == "Identity" and not inner.outputs[0].is_output:
                graph.replace(inner.outputs[0], inner.inputs[0])
                graph.remove(inner)


Rule = Callable[[EditableNode, Shapes, bool], "EditableValue | None"]
_RULES: dict[str, Rule] = {}
_rule = registering(_RULES)


@_rule("Identity")
def _identity(node: EditableNode, _shapes: Shapes, _signed: bool) -> EditableValue | None:
    return node.inputs[0]


@_rule("Dropout")
def _dropout(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    if shapes.model.opset < 7:
        return node.inputs[0] if integer(node, "is_test", 0) else None
    training = given(node, 2)
    if training is None or shapes.model.scalar(training) == False:  # noqa: E712 (a NumPy bool)
        return node.inputs[0]
    return None


@_rule("Cast")
def _cast(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    dtype = shapes.dtype(node.inputs[0])
    stated = node.attrs.get("to", "")  # a name in the first versions
    target = ELEMENT_TYPES.get(int(stated)) if stated.isdigit() else None
    return node.inputs[0] if dtype is not None and dtype.name == target else None


@_rule("Concat", "Sum", "Max", "Min", "Mean")
def _of_one(node: EditableNode, _shapes: Shapes, _signed: bool) -> EditableValue | None:
    return node.inputs[0] if len(node.inputs) == 1 else None


@_rule("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Split")
def _same_shape(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    shape = shapes.shape(node.inputs[0])
    if node.op == "Split" and node.num_outputs > 1:
        return None
    return node.inputs[0] if shape is not None and shape == shapes.shape(node.outputs[0]) else None


@_rule("Transpose")
def _transpose(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    order = integers(node, "perm")
    rank = shapes.rank(node.inputs[0])
    if order is None and rank is not None:
        order = list(range(rank))[::-1]
    return node.inputs[0] if order is not None and order == sorted(order) else None


@_rule("Expand")
def _expand(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    shape, target = shapes.shape(node.inputs[0]), shapes.content(node.inputs[1])
    if shape is None or target is None or target.ndim != 1:
        return None
    missing = len(shape) - len(target)
    if missing >= 0 and all(
        wanted in (1, size) for wanted, size in zip(target, shape[missing:], strict=True)
    ):
        return node.inputs[0]
    # Operators that broadcast expand it themselves.
    valid = broadcast(shape, tuple(target))
    if None in valid or valid != shapes.shape(node.outputs[0]) or node.outputs[0].is_output:
        return None
    return node.inputs[0] if all(_expands(user, node, shapes) for user in node.users) else None


_BROADCASTING = frozenset(
    ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
     "And", "Or", "Xor", "Where", "Max", "Min", "Pow")
)  # fmt: skip


def _expands(user: EditableNode, node: EditableNode, shapes: Shapes) -> bool:
    """Whether a user broadcasts the expanded value anyway."""
    if operator(user) not in _BROADCASTING or is_old_broadcast(user):
        return False
    total = broadcast((), ())
    for value in user.inputs:
        shape = shapes.shape(node.inputs[0] if value == node.outputs[0] else value)
        if shape is None:
            return False
        total = broadcast(total, shape)
    whole_shape = shapes.shape(user.outputs[0])
    target = shapes.shape(node.outputs[0])
    return whole_shape is not None and total == whole_shape == target


@_rule("Tile")
def _tile(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    times = whole(node.inputs[1], shapes) if len(node.inputs) == 2 else None
    return node.inputs[0] if times is not None and all(time == 1 for time in times) else None


@_rule("Pad")
def _pad(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    pads = integers(node, "pads") or integers(node, "paddings")
    if pads is None and given(node, 1) is not None:
        pads = whole(node.inputs[1], shapes)
    return node.inputs[0] if pads is not None and not any(pads) else None


@_rule("Slice")
def _slice(node: EditableNode, shapes: Shapes, _signed: bool) -> EditableValue | None:
    shape = shapes.shape(node.inputs[0])
    if shape is None or shape != shapes.shape(node.outputs[0]):
        return None
    if given(node, 4) is not None:
        steps = whole(node.inputs[4], shapes)
        if steps is None or any(step != 1 for step in steps):
            return None
    return node.inputs[0]


@_rule("Add", "Sub", "Mul", "Div")
def _arithmetic(node: EditableNode, shapes: Shapes, signed: bool) -> EditableValue | None:
    if is_old_broadcast(node):
        return None
    commutes = node.op in ("Add", "Mul")
    for place in (1, 0) if commutes else (1,):
        value, array = node.inputs[1 - place], shapes.model.array(node.inputs[place])
        if array is None or not array.size or not _is_neutral(node.op, array, signed):
            continue
        shape = shapes.shape(value)
        if shape is not None and shape == shapes.shape(node.outputs[0]):
            dims = broadcast(shape, array.shape)
            if dims == shape and _fits(shape, array.shape):
                return value
    return None


def _fits(shape: tuple[object, ...], other: tuple[int, ...]) -> bool:
    """Whether broadcasting with the other shape certainly succeeds and changes nothing."""
    if len(other) > len(shape):
        return False
    last = shape[len(shape) - len(other) :]
    return all(size in (1, have) for size, have in zip(other, last, strict=True))


def _is_neutral(name: str, array: np.ndarray[Any, Any], signed: bool) -> bool:
    if name in ("Mul", "Div"):
        return bool(np.all(array == 1))
    if np.any(array != 0):
        return False
    if array.dtype.kind in "iu" or not signed:
        return True
    negative = np.signbit(array.astype(np.float64))
    return bool(np.all(negative) if name == "Add" else not np.any(negative))
