"""What stands in front of a linear layer and goes into its weights: a part of foldLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.passes.standard.facts.layers import Layer
from passlib.passes.standard.facts.nodes import (
    Model,
    given,
    integer,
    is_old_broadcast,
    operator,
)
from passlib.passes.standard.facts.rules.fused import Fused
from passlib.passes.standard.facts.shapes import Shapes

Factors = np.ndarray[Any, np.dtype[np.float64]]
Affine = tuple[Factors | None, Factors | None]

_BINARY = ("Mul", "Div", "Add", "Sub")


def affine(name: str, place: int, constant: Factors) -> Affine:
    """Return factors and summands by which an operator changes the channels of its input.

    Parameters
    ----------
    name : {"Mul", "Div", "Add", "Sub"}
    place : int
        Which input is changed; the other one is the constant.
    constant : numpy.ndarray
    """
    if name == "Mul":
        return constant, None
    if name == "Div":
        with np.errstate(divide="ignore", invalid="ignore"):
            return 1.0 / constant, None
    if name == "Add":
        return None, constant
    if place == 1:
        return np.array([-1.0]), constant
    return None, -constant


def may_fold_before(layer: Layer) -> bool:
    """Whether an operator in front of a layer may go into it."""
    node = layer.node.inputs[0].node
    if operator(layer.node) not in ("Conv", "Gemm", "MatMul") or node.control_deps:
        return False
    value = layer.node.inputs[0]
    if value.is_output or not value.only_use or integer(layer.node, "transA", 0):
        return False
    return operator(node) in (*_BINARY, "BatchNormalization") and not is_old_broadcast(node)


def fold_before(model: Model, layer: Layer, shapes: Shapes | None, fused: Fused) -> bool:
    """Fold the operator in front of a layer, if the layer is all that uses it.

    Returns
    -------
    bool
        Whether it was folded.
    """
    if not may_fold_before(layer):
        return False
    value = layer.node.inputs[0]
    node = value.node
    rank = layer.rank if layer.rank is not None else shapes.rank(value) if shapes else None
    place, found = 0, None
    if operator(node) == "BatchNormalization":
        found = _normalization(model, layer, node, rank) if value.index == 0 else None
    else:
        place = next((i for i in (0, 1) if model.array(node.inputs[1 - i]) is not None), 0)
        array = model.array(node.inputs[1 - place])
        if array is not None and not (operator(node) == "Div" and place == 1):
            kept = _keeps_shape(layer, node.inputs[place], array, shapes)
            constant = layer.by_input(array, rank) if kept else None
            found = None if constant is None else affine(operator(node), place, constant)
    if found is None or node in fused or not layer.absorb_before(*found):
        return False
    model.graph.connect(node.inputs[place], layer.node, 0)
    model.remove_unused([node])
    return True


def _keeps_shape(
    layer: Layer, data: EditableValue, array: np.ndarray[Any, Any], shapes: Shapes | None
) -> bool:
    """Whether arithmetic with a constant leaves the shape of the data of a layer.

    It may add axes, or repeat a single channel, which the layer would refuse without it.
    """
    if array.ndim == 0:
        return True
    sizes = shapes.shape(data) if shapes else None
    if sizes is None or len(sizes) < array.ndim:
        return False
    return array.size == 1 or sizes[layer.input_axis(len(sizes))] == layer.inputs


def _normalization(
    model: Model, layer: Layer, node: EditableNode, rank: int | None
) -> Affine | None:
    """Return factors and summands of a normalization by stored statistics; None if it has none."""
    if rank is None or (operator(layer.node) != "Conv" and rank != 2):
        return None
    if integer(node, "training_mode", 0) or not integer(node, "spatial", 1):
        return None
    if any(value.uses or value.is_output for value in node.outputs[1:]):
        return None
    if model.opset < 14 and len(node.outputs) > 1:
        return None
    if model.opset < 7 and not integer(node, "is_test", 0):
        return None
    arrays = [model.array(given(node, number)) for number in range(1, 5)]
    numbers = [None if a is None or a.ndim != 1 else np.asarray(a, np.float64) for a in arrays]
    if any(each is None or each.size != layer.inputs for each in numbers):
        return None
    scale, bias, mean, variance = (each for each in numbers if each is not None)
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = scale / np.sqrt(variance + float(node.attrs.get("epsilon", 1e-5)))
        return factors, bias - mean * factors
