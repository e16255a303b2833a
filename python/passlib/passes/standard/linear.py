"""foldLinear: folds arithmetic and padding next to a linear layer into its weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.kernels import Fused
from passlib.passes.standard.facts.layers import Layer, layer_of
from passlib.passes.standard.facts.nodes import (
    Model,
    given,
    integer,
    integers,
    is_old_broadcast,
    operator,
    text,
)
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.families import linear

Factors = np.ndarray[Any, np.dtype[np.float64]]
Affine = tuple[Factors | None, Factors | None]

_BINARY = ("Mul", "Div", "Add", "Sub")


def affine(name: str, place: int, constant: Factors) -> Affine:
    """Return factors and summands by which an operator changes the channels of its input.

    Parameters
    ----------
    place : int
        Which input is changed; the other one is the constant.
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


@graph_pass(
    name="foldLinear",
    dialects=["onnx", "mxnet", "nnvm"],
    triggers=[
        "Conv",
        "ConvTranspose",
        "Gemm",
        "MatMul",
        "Convolution",
        "Deconvolution",
        "FullyConnected",
    ],
    joins=Joins(["simplify"], after="foldBatchNormalization", cost="weights"),
)
def fold_linear(graph: Graph) -> None:
    """Fold Mul, Div, Add, Sub and Pad with constants into the weights of linear layers.

    The layers are Conv, ConvTranspose, Gemm and MatMul with floating-point weights. Products are
    computed in double precision. BatchNormalization before Conv, Gemm and MatMul is folded, too; an
    addition before a layer with padding stays.
    """
    if graph.dialect != "onnx":
        linear.fold_linear(graph)
        return
    model, fused = Model(graph), Fused(graph)
    shapes: Shapes | None = None
    for node in graph.sorted():
        layer = None if node in model.gone else layer_of(model, node)
        if layer is None:
            continue
        _fold_padding(model, layer)
        if shapes is None and _needs_shapes(layer):
            # Shapes stay what they are when an operator goes into a layer.
            shapes = Shapes(model)
        # The folded operator may be the only user of the layer, if nothing needs the result.
        while node not in model.gone and (
            _fold_next(model, layer, shapes, fused) or fold_before(model, layer, shapes, fused)
        ):
            pass


def _needs_shapes(layer: Layer) -> bool:
    if may_fold_before(layer):
        return True
    # A layer whose rank the weights do not tell is a MatMul, which has no bias.
    use = layer.node.outputs[0].only_use
    return layer.needs_rank and use is not None and operator(use[0]) in ("Mul", "Div")


_AFFINE = ("Mul", "Div", "Add", "Sub")


def _fold_next(model: Model, layer: Layer, shapes: Shapes | None, fused: Fused) -> bool:
    """Fold the operator after a layer if it is the only one."""
    result = layer.node.outputs[0]
    if result.is_output or result.only_use is None:
        return False
    user, place = result.only_use
    name = operator(user)
    if name not in _AFFINE or user.control_deps or is_old_broadcast(user):
        return False
    array = model.array(user.inputs[1 - place])
    if array is None or user.inputs[0] == user.inputs[1] or (name == "Div" and place == 1):
        return False
    rank = layer.rank if layer.rank is not None else shapes.rank(result) if shapes else None
    constant = layer.by_channel(array, rank)
    if constant is None or user in fused:
        return False
    scale, shift = affine(name, place, constant)
    if not layer.absorb(scale, shift):
        return False
    model.replace(user, result)
    return True


def _fold_padding(model: Model, layer: Layer) -> None:
    """Fold a Pad with zeros in front of a convolution into its attribute pads."""
    node = layer.node
    pad = node.inputs[0].node
    if operator(node) != "Conv" or operator(pad) != "Pad" or pad.control_deps:
        return
    if text(pad, "mode", "constant") != "constant" or text(node, "auto_pad", "NOTSET") != "NOTSET":
        return
    amounts = _amounts(model, pad)
    rank = layer.rank
    if amounts is None or rank is None or len(amounts) != 2 * rank or not _is_zero(model, pad):
        return
    before, after = amounts[:rank], amounts[rank:]
    if min(amounts) < 0 or any(before[:2]) or any(after[:2]):
        return
    present = integers(node, "pads") or [0] * (2 * (rank - 2))
    added = [old + new for old, new in zip(present, [*before[2:], *after[2:]], strict=True)]
    node.attrs["pads"] = str(added)
    model.graph.connect(pad.inputs[0], node, 0)
    model.remove_unused([pad])


def _amounts(model: Model, pad: EditableNode) -> list[int] | None:
    stated = integers(pad, "pads") or integers(pad, "paddings")
    if stated is not None:
        return stated
    array = model.array(given(pad, 1))
    if array is None or given(pad, 3) is not None:
        return None
    return [int(item) for item in array.reshape(-1)]


def _is_zero(model: Model, pad: EditableNode) -> bool:
    value: EditableValue | None = given(pad, 2)
    if value is not None:
        return bool(model.scalar(value) == 0)
    return float(pad.attrs.get("value", 0.0)) == 0.0
