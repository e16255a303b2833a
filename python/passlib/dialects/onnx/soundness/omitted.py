"""Inputs that nodes omit at the end of their lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.forms import fewest_inputs
from passlib.dialects.onnx.soundness.model import versions_of

__all__ = ["drop_omitted"]


def drop_omitted(model: Any) -> None:
    """Leave out the empty names at the end of the inputs of nodes, which mean the same.

    ONNX Runtime 1.32 ends the process on LayerNormalization whose last input has an empty name.

    Parameters
    ----------
    model : onnx.ModelProto
    """
    versions = versions_of(model.opset_import)
    _drop(model.graph, versions)
    for function in model.functions:
        _drop(function, versions_of(function.opset_import) or versions)


def _drop(body: Any, versions: Mapping[str, int]) -> None:
    for graph in graphs_within(body):
        for node in graph.node:
            if not node.input or node.input[-1]:
                continue
            version = versions.get(schema.plain(node.domain), 0)
            fewest = fewest_inputs(node.domain, node.op_type, version)
            while fewest is not None and len(node.input) > fewest and not node.input[-1]:
                del node.input[-1]
