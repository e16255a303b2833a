"""Sizes that a model's own constants determine, before ONNX Runtime allocates by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INTS
from passlib.dialects.onnx.nested import graphs_within
from passlib.dialects.onnx.soundness.inference import MOST_AXES, inferred, wide_nodes
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import GraphError
from passlib.lowering.types import Shape, check_extent

_ITEM: Final = np.dtype(np.float32)


class Allocation(NamedTuple):
    """Memory that ONNX Runtime takes for a node.

    Attributes
    ----------
    what : str
        For the message.
    dtype : numpy.dtype
    shape : tuple of (int or None)
    """

    what: str
    dtype: np.dtype[Any]
    shape: Shape


def allocations(graph: Any, shapes: Mapping[str, Shape]) -> Iterator[Allocation]:
    """Iterate over what nodes of a graph allocate by their attributes.

    ``shapes``: those of its values that are known.
    """
    for number, node in enumerate(graph.node):
        rule = _RULES.get((schema.plain(node.domain), node.op_type))
        if rule is not None and node.input:
            title = repr(node.name) if node.name else str(number)
            yield rule(f"node {title} ({node.op_type})", node, shapes.get(node.input[0]))


def _normalization(what: str, node: Any, shape: Shape | None) -> Allocation:
    """Compute the squares of LRN with as many channels around them as its window has."""
    size = next((each.i for each in node.attribute if each.name == "size"), 1)
    _, channels, *image = shape if shape is not None and len(shape) > 1 else (None, None)
    return Allocation(f"the window of {what}", _ITEM, ((channels or 1) + max(size, 1) - 1, *image))


def _joined_features(what: str, node: Any, shape: Shape | None) -> Allocation:
    sizes = [n for each in node.attribute if each.type == INTS for n in each.ints]
    rows = shape[0] if shape is not None and len(shape) > 1 else None
    return Allocation(f"the result of {what}", _ITEM, (rows, sum(max(n, 0) for n in sizes)))


_RULES: Final = {("", "LRN"): _normalization, ("ai.onnx.ml", "FeatureVectorizer"): _joined_features}


_WIDE: Final = np.dtype(np.int64)
"""Stands for element types that NumPy does not have."""


def check_sizes(model: Any) -> None:
    """Check the values of a model whose sizes follow from the model alone.

    ONNX Runtime computes values of constants when it compiles a model, whether or not an output
    needs them. ``model``: sound, see `check_model`. Raises `GraphError` if a value takes more
    memory than `passlib.limits` permits, or has too many axes.
    """
    found = inferred(model)
    _check_axes(found)
    _check_values(found)


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
    for number, place in wide_nodes(model, graphs, certain=True):
        node = graphs[number].node[place]
        raise GraphError(
            f"node {node.name or place!r} ({node.op_type}): its result has more than {MOST_AXES} "
            f"axes, and no runtime computes with so many"
        )
