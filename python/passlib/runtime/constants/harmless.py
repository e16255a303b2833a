"""Whether ONNX Runtime computes a model without inputs, whatever its sizes and numbers are.

ONNX Runtime 1.32 ends the process on GRU or CausalConvWithState without elements, and on the
smallest whole number divided by -1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.soundness import inferred
from passlib.files.optional import require

_ANY_SIZE: Final = frozenset(
    ("Abs", "Add", "And", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape",
     "Cos", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "GatherElements",
     "GatherND", "Greater", "GreaterOrEqual", "Identity", "If", "IsInf", "IsNaN", "Less",
     "LessOrEqual", "Log", "Loop", "MatMul", "Max", "Min", "Mul", "Neg", "NonZero", "Not",
     "Or", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin",
     "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Shape", "Sigmoid", "Sign",
     "Sin", "Size", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh",
     "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor")
)  # fmt: skip
"""Operators of ONNX that take values without elements; ``make sweep-empty`` tries all."""

_SIGNED: Final = frozenset((3, 5, 6, 7))
"""Types of whole numbers below 0."""


def is_harmless(model: Any) -> bool:
    """Whether each operator is known to compute what it gets.

    Parameters
    ----------
    model : onnx.ModelProto
        Sound; its larger initializers may have their elements elsewhere.
    """
    graphs = list(graphs_within(model.graph))
    if all(_takes_any_size(node) for graph in graphs for node in graph.node):
        return not model.functions
    if len(graphs) > 1 or model.functions:
        return False
    graph = inferred(model, data=True).graph
    types = {value.name: value.type.tensor_type for value in (*graph.value_info, *graph.output)}
    weights = {tensor.name: tensor for tensor in graph.initializer}
    return all(_is_sure(node, types, weights) for node in graph.node)


def _takes_any_size(node: Any) -> bool:
    return not schema.plain(node.domain) and node.op_type in _ANY_SIZE


def _is_sure(node: Any, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    if _takes_any_size(node):
        return True
    if not all(_has_elements(name, types, weights) for name in (*node.input, *node.output) if name):
        return False
    return node.op_type != "Div" or _is_sure_division(node, types, weights)


def _has_elements(name: str, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    if name in weights:
        return 0 not in weights[name].dims
    kind = types.get(name)
    return (
        kind is not None
        and kind.HasField("shape")
        and all(dim.dim_value > 0 for dim in kind.shape.dim)
    )


def _is_sure_division(node: Any, types: Mapping[str, Any], weights: Mapping[str, Any]) -> bool:
    quotient = types.get(node.output[0])
    if quotient is None or quotient.elem_type not in _SIGNED:
        return quotient is not None and quotient.elem_type != 0
    divisor = weights.get(node.input[1])
    if divisor is None or divisor.external_data:
        return False
    return -1 not in require("onnx.numpy_helper", extra="onnx").to_array(divisor)
