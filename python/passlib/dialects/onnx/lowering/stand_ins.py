"""Operators of ONNX Runtime whose results have the types of operators of ONNX."""

from __future__ import annotations

from typing import Any, Final

from passlib.dialects.onnx.messages import graphs_within

_DOMAIN: Final = "com.microsoft"

_STAND_INS: Final = {
    "BiasGelu": "Identity",
    "DynamicQuantizeLSTM": "LSTM",
    "FastGelu": "Identity",
    "Gelu": "Identity",
    "QuickGelu": "Identity",
}
"""By operator: one whose results have the same types, which follow from the first input.

From "Contrib Operators" in the documentation of ONNX Runtime 1.32.
"""

_KEPT: Final = {"LSTM": ("direction", "hidden_size")}
"""The attributes that determine types."""

_INPUTS: Final = {"LSTM": 3}
"""The number of inputs that a stand-in must have."""


def put_stand_ins(model: Any) -> None:
    """Replace operators of ONNX Runtime by others, so that ONNX's inference knows their results.

    Parameters
    ----------
    model : onnx.ModelProto
        It computes something else afterwards.
    """
    for graph in graphs_within(model.graph):
        for node in graph.node:
            name = _STAND_INS.get(node.op_type) if node.domain == _DOMAIN else None
            if name and node.input:
                _replace(node, name)


def _replace(node: Any, name: str) -> None:
    node.domain, node.op_type = "", name
    node.input[:] = [node.input[0]] * _INPUTS.get(name, 1)
    kept = [each for each in node.attribute if each.name in _KEPT.get(name, ())]
    copies = [type(each).FromString(each.SerializeToString()) for each in kept]
    del node.attribute[:]
    node.attribute.extend(copies)
