"""Sizes that a model's own constants determine, before ONNX Runtime allocates by them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.growth import MOST_AXES, growing_nodes
from passlib.dialects.onnx.soundness.inference import inferred
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.dialects.onnx.soundness.unstated import allocations, with_stand_ins
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import GraphError
from passlib.lowering.shapes import check_extent
from passlib.lowering.types import Shape

_WIDE: Final = np.dtype(np.int64)
"""Stands for element types that NumPy does not have."""


def check_sizes(model: Any) -> None:
    """Check the values of a model whose sizes follow from the model alone.

    ONNX Runtime computes values of constants when it compiles a model, whether or not an output
    needs them.

    Parameters
    ----------
    model : onnx.ModelProto
        Sound, see `check_model`.

    Raises
    ------
    GraphError
        A value takes more memory than `passlib.limits` permits, or has too many axes.
    """
    found = inferred(model, data=True)
    _check_axes(found)
    _check_values(found)
    replaced = with_stand_ins(found)
    if replaced is not None:
        _check_values(inferred(replaced, data=True))


def _check_values(model: Any) -> None:
    """Refuse values, and memory for nodes, that are too large."""
    shapes: dict[str, Shape] = {}  # those of a graph come before those of graphs nested in it
    for graph in graphs_within(model.graph):
        for value in (*graph.value_info, *graph.input, *graph.output):
            tensor = value.type.tensor_type
            if value.type.WhichOneof("value") != "tensor_type" or not tensor.HasField("shape"):
                continue
            known = ELEMENT_TYPES.get(tensor.elem_type)
            dtype = _WIDE if known in (None, "bfloat16") else np.dtype(known)
            sizes = tuple(dim.dim_value if dim.dim_value > 0 else None for dim in tensor.shape.dim)
            check_extent(f"value {value.name!r}", dtype, sizes)
            shapes[value.name] = sizes
        for each in allocations(graph, shapes):
            check_extent(each.what, each.dtype, each.shape)


def _check_axes(model: Any) -> None:
    """Refuse values of so many axes that inference in ONNX Runtime would take the memory."""
    graphs = list(graphs_within(model.graph))
    for number, place in growing_nodes(
        model, graphs, versions_of(model.opset_import), certain=True
    ):
        node = graphs[number].node[place]
        raise GraphError(
            f"node {node.name or place!r} ({node.op_type}): its result has more than {MOST_AXES} "
            f"axes, and no runtime computes with so many"
        )
