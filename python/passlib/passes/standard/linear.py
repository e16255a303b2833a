"""foldLinear: multiplications, additions and padding next to a linear layer go into its weights."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.before import affine, fold_before, may_fold_before
from passlib.passes.standard.facts.layers import Layer, layer_of
from passlib.passes.standard.facts.nodes import (
    Model,
    given,
    integers,
    is_old_broadcast,
    operator,
    text,
)
from passlib.passes.standard.facts.rules.fused import Fused
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.families import linear


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
    """Folds Mul, Div, Add, Sub and Pad with constants into the weights of linear layers.

    The layers are Conv, ConvTranspose, Gemm and MatMul with weights of real numbers. Products are
    computed in double precision. In front of Conv, Gemm and MatMul, BatchNormalization is folded,
    too; what adds to the data of a layer with padding stays.
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
        # What is folded may be all that used the layer, if nothing needs the result.
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
