"""Sizes that a model's own constants determine, before ONNX Runtime allocates by them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INTS
from passlib.dialects.onnx.nested import copy_of, graphs_within
from passlib.dialects.onnx.soundness.inference import MOST_AXES, growing_nodes, inferred
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.errors import GraphError
from passlib.files.optional import require
from passlib.lowering.types import Shape, check_extent

_VERSION: Final = 17
"""An operator set that has all the stand-ins in the forms that are used here."""

_RUNTIME: Final = "com.microsoft"

_STAND_INS: Final = {
    ("", "MaxUnpool"): ("ConstantOfShape", (2,)),
    (_RUNTIME, "ConvTransposeWithDynamicPads"): ("ConvTranspose", (0, 1)),
    (_RUNTIME, "CropAndResize"): ("ConstantOfShape", (0, 1, 3)),
    (_RUNTIME, "FusedConv"): ("Conv", (0, 1)),
    (_RUNTIME, "Pad"): ("Pad", (0, 1)),
    (_RUNTIME, "Range"): ("Range", (0, 1, 2)),
}
"""By operator: one of ONNX whose result is as large, or larger, and the inputs that it takes.

Nodes without these inputs have sizes that inference states.
"""

_KEPT: Final = {
    "Conv": ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"),
    "ConvTranspose": ("dilations", "group", "kernel_shape", "output_padding", "strides"),
}
"""The attributes that determine sizes."""

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


def with_stand_ins(model: Any) -> Any:
    """Copy a model, with operators that ONNX's inference knows for some that it does not know.

    The result computes something else, in an operator set that may be newer than its nodes. None if
    no node is to be replaced.
    """
    if not any(_stand_in(node) for graph in graphs_within(model.graph) for node in graph.node):
        return None
    made = copy_of(model)
    if versions_of(made.opset_import).get("", 0) < _VERSION:
        others = [copy_of(each) for each in made.opset_import if schema.plain(each.domain)]
        del made.opset_import[:]
        made.opset_import.extend(others)
        made.opset_import.add(domain="", version=_VERSION)
    for graph in graphs_within(made.graph):
        nodes = list(graph.node)
        if any(map(_stand_in, nodes)):
            kept = [copy_of(each) for node in nodes for each in _replaced(node)]
            del graph.node[:]
            graph.node.extend(kept)
    return made


def allocations(graph: Any, shapes: Mapping[str, Shape]) -> Iterator[Allocation]:
    """Iterate over what nodes of a graph allocate by their attributes.

    ``shapes``: those of its values that are known.
    """
    for number, node in enumerate(graph.node):
        rule = _RULES.get((schema.plain(node.domain), node.op_type))
        if rule is not None and node.input:
            title = repr(node.name) if node.name else str(number)
            yield rule(f"node {title} ({node.op_type})", node, shapes.get(node.input[0]))


def _stand_in(node: Any) -> tuple[str, tuple[int, ...]] | None:
    found = _STAND_INS.get((schema.plain(node.domain), node.op_type))
    if found is None or any(i >= len(node.input) or not node.input[i] for i in found[1]):
        return None
    return found


def _replaced(node: Any) -> list[Any]:
    found = _stand_in(node)
    if found is None:
        return [node]
    name, places = found
    inputs = [node.input[place] for place in places]
    before = []
    if node.op_type == "CropAndResize":
        before = _crop_shape(node, inputs)
        inputs = [before[-1].output[0]]
    helper: Any = require("onnx.helper", extra="onnx")
    made = helper.make_node(name, inputs, node.output[:1])
    made.attribute.extend(each for each in node.attribute if each.name in _KEPT.get(name, ()))
    return [*before, made]


def _crop_shape(node: Any, inputs: list[str]) -> list[Any]:
    """Compute the shape of a crop: regions, channels, height, width."""
    helper: Any = require("onnx.helper", extra="onnx")
    onnx: Any = require("onnx", extra="onnx")
    image, regions, sizes = inputs
    names = [f"passlib: {part} of {node.output[0]}" for part in "abcdefgh"]
    nodes = []
    for place, (source, axis) in enumerate(((regions, 0), (image, 1))):
        shape, index, size = names[3 * place : 3 * place + 3]
        nodes += [
            helper.make_node("Shape", [source], [shape]),
            helper.make_node("Constant", [], [index], value_ints=[axis]),
            helper.make_node("Gather", [shape, index], [size], axis=0),
        ]
    nodes.append(helper.make_node("Cast", [sizes], [names[6]], to=onnx.TensorProto.INT64))
    parts = [names[2], names[5], names[6]]
    nodes.append(helper.make_node("Concat", parts, [names[7]], axis=0))
    return nodes


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
    replaced = with_stand_ins(found)
    if replaced is not None:
        _check_values(inferred(replaced))


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
