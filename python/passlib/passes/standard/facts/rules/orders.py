"""Sizes of results whose axes are those of an input, in order, in another one, or without some."""

from __future__ import annotations

from passlib._core import EditableNode
from passlib.passes.standard.facts.known import Known
from passlib.passes.standard.facts.nodes import given, integer, integers
from passlib.passes.standard.facts.rules.contents import axes_of
from passlib.passes.standard.facts.rules.extents import Extents, extent_rule
from passlib.passes.standard.facts.sizes import product


@extent_rule(
    "Abs", "BatchNormalization", "Cast", "Ceil", "Celu", "Clip", "Cos", "DequantizeLinear",
    "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "GroupNormalization", "HardSigmoid",
    "HardSwish", "Identity", "InstanceNormalization", "IsInf", "IsNaN", "LRN",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "Mish", "Neg",
    "Not", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin",
    "Softmax", "Softplus", "Softsign", "Sqrt", "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
def _same(node: EditableNode, known: Known) -> Extents | None:
    return known.shape(node.inputs[0])


@extent_rule("Shape")
def _of_shape(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    return (len(shape[integer(node, "start", 0) : integer(node, "end", len(shape))]),)


@extent_rule("Transpose")
def _transpose(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    order = integers(node, "perm")
    if order is None:
        return shape[::-1]
    return tuple(shape[axis] for axis in order) if len(order) == len(shape) else None


@extent_rule("Gather")
def _gather(node: EditableNode, known: Known) -> Extents | None:
    shape, places = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    axis = _places(shape, [integer(node, "axis", 0)])
    if not shape or places is None or axis is None:
        return None
    return (*shape[: axis[0]], *places, *shape[axis[0] + 1 :])


@extent_rule("Unsqueeze")
def _unsqueeze(node: EditableNode, known: Known) -> Extents | None:
    shape, axes = known.shape(node.inputs[0]), axes_of(node, known)
    if shape is None or axes is None:
        return None
    rank = len(shape) + len(axes)
    added = {axis + rank if axis < 0 else axis for axis in axes}
    rest = iter(shape)
    if len(added) != len(axes) or not added.issubset(range(rank)):
        return None
    return tuple(1 if axis in added else next(rest) for axis in range(rank))


@extent_rule("Squeeze")
def _squeeze(node: EditableNode, known: Known) -> Extents | None:
    shape, axes = known.shape(node.inputs[0]), axes_of(node, known)
    gone = _places(shape, axes)
    if shape is None or not gone:  # without axes, those of size 1 go
        return None
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


@extent_rule(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def _reduce(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    if shape is None:
        return None
    axes = axes_of(node, known)
    if not axes:
        if given(node, 1) is not None and axes is None:
            return None
        if integer(node, "noop_with_empty_axes", 0) == 1:
            return shape
        axes = list(range(len(shape)))
    gone = _places(shape, axes)
    if gone is None:
        return None
    if integer(node, "keepdims", 1) == 1:
        return tuple(1 if axis in gone else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


@extent_rule("Flatten")
def _flatten(node: EditableNode, known: Known) -> Extents | None:
    shape = known.shape(node.inputs[0])
    axis = integer(node, "axis", 1)
    if shape is None or not -len(shape) <= axis <= len(shape):
        return None
    place = axis + len(shape) if axis < 0 else axis
    return product(shape[:place]), product(shape[place:])


@extent_rule("Gemm")
def _gemm(node: EditableNode, known: Known) -> Extents | None:
    left, right = known.shape(node.inputs[0]), known.shape(node.inputs[1])
    if left is None or right is None or len(left) != 2 or len(right) != 2:
        return None
    return left[bool(integer(node, "transA", 0))], right[not integer(node, "transB", 0)]


def _places(shape: Extents | None, axes: list[int] | None) -> list[int] | None:
    """Return axes counted from the first one; None if they are not known, or not there."""
    if shape is None or axes is None:
        return None
    rank = len(shape)
    if not all(-rank <= axis < rank for axis in axes):
        return None
    return [axis % rank for axis in axes]
