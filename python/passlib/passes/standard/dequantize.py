"""fuseDequantize: replaces Cast and Mul of integer weights by DequantizeLinear."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, is_old_broadcast, operator

_FLOAT = 1


@graph_pass(
    name="fuseDequantize",
    dialects=["onnx"],
    exact=True,
    triggers=["Cast"],
    joins=Joins(["clean", "simplify"], after="dropZeroStates"),
)
def fuse_dequantize(graph: Graph) -> None:
    """Replace Cast of 8-bit weights and Mul with a scale, or one per row, by DequantizeLinear."""
    model = Model(graph)
    if model.opset < 13:
        return
    for node in graph.sorted():
        if node in model.gone or operator(node) != "Cast" or node.control_deps:
            continue
        if node.attrs.get("to") != str(_FLOAT):
            continue
        weight = model.array(node.inputs[0])
        uses = node.outputs[0].uses
        if weight is None or weight.dtype.name not in ("int8", "uint8") or len(uses) != 1:
            continue
        user, place = uses[0]
        if node.outputs[0].is_output or operator(user) != "Mul" or user.control_deps:
            continue
        if not is_old_broadcast(user):
            _fuse(model, node, user, user.inputs[1 - place], weight)


def _fuse(
    model: Model,
    cast: EditableNode,
    product: EditableNode,
    factor: EditableValue,
    weight: np.ndarray[Any, Any],
) -> None:
    scale = model.array(factor)
    if scale is None or scale.dtype != np.float32 or scale.ndim > weight.ndim:
        return
    sizes = (1,) * (weight.ndim - scale.ndim) + scale.shape
    long = [axis for axis, size in enumerate(sizes) if size != 1]
    if len(long) > 1 or any(sizes[axis] != weight.shape[axis] for axis in long):
        return
    result = product.outputs[0]
    shape: tuple[int, ...] = (scale.size,) if long else ()
    made = factor
    if scale.shape != shape:
        made = model.add_constant(f"{factor.node.name}_flat", scale.reshape(shape))
    attributes = {"axis": long[0]} if long else {}
    model.replace(
        product, model.add_like(result, "DequantizeLinear", [cast.inputs[0], made], attributes)
    )
