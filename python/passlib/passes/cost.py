"""The cost of a model: operators, bytes, and estimates of arithmetic and memory traffic."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from passlib.dialects.inference import infer
from passlib.dialects.onnx.nested import nested_bytes
from passlib.dialects.onnx.reading import document_of
from passlib.graph.attributes import parse_optional_ints
from passlib.graph.node import Node
from passlib.graph.plain import WITH_GRAPHS, PlainGraph, operators_of
from passlib.lowering import TypeSpec, type_of
from passlib.model import Model

CostName = Literal["nodes", "bytes", "flops", "traffic"]

COSTS: tuple[CostName, ...] = ("nodes", "bytes", "flops", "traffic")
"""The measures that simplification can lower: fields of `Cost` and `Work`."""


class Cost(NamedTuple):
    """The cost of a model.

    Attributes
    ----------
    nodes : int
        Number of operators, including nested graphs, without variables and constants.
    bytes : int
        Size of the weights, including nested graphs.
    """

    nodes: int
    bytes: int


def cost_of(model: Model) -> Cost:
    """Return the cost of a model."""
    nodes = operators_of(model.symbol.graph).total()
    weights: list[Any] = [model.args, model.aux]
    size = sum(each.nbytes for each in weights)
    if model.dialect == "onnx" and has_nested(model.symbol):
        size += nested_bytes(document_of(model.symbol.attributes), model.symbol.graph)
    return Cost(nodes, size)


def has_nested(symbol: PlainGraph) -> bool:
    """Whether a graph has nested graphs."""
    return any(True for _ in symbol.graph.nodes_with(WITH_GRAPHS))


def rank_of(model: Model, price: Cost, cost: CostName) -> int:
    """Return one measure of a model whose `Cost` is known."""
    if cost in Cost._fields:
        return int(getattr(price, cost))
    return int(getattr(work_of(model.symbol, {**model.args, **model.aux}), cost))


_VIEWS = frozenset(
    ("Reshape", "reshape", "Squeeze", "squeeze", "Unsqueeze", "expand_dims", "Flatten", "flatten",
     "Identity", "identity", "_copy", "Shape", "shape_array", "Size", "Dropout", "BlockGrad")
)  # fmt: skip
"""Operators that return a view."""

_PARTS = frozenset(("Gather", "Slice", "take", "slice", "slice_axis", "Embedding", "Split"))
"""Operators that read only as many elements as they write."""

_MOVES = frozenset(
    ("Transpose", "transpose", "Concat", "concat", "Expand", "broadcast_to", "Tile", "tile", "Pad",
     "pad", "ConstantOfShape", "Range")
)  # fmt: skip
"""Other operators without arithmetic."""

_CONVOLUTIONS = {
    "Conv": 1, "ConvInteger": 1, "QLinearConv": 3, "Convolution": 1, "conv2d": 1,
    "Convolution2D": 1,
}  # fmt: skip
_TRANSPOSED = {
    "ConvTranspose": 1, "Deconvolution": 1, "conv2d_transpose": 1, "TransposedConvolution2D": 1,
}  # fmt: skip
_LAYERS = {"FullyConnected": 1, "dense": 1, "InnerProduct": 1}
_PRODUCTS = frozenset(("MatMul", "MatMulInteger", "dot", "batch_dot"))
_RECURRENT = frozenset(("LSTM", "GRU", "RNN", "DynamicQuantizeLSTM"))
"""By operator: the index of the weights among the inputs."""


class Work(NamedTuple):
    """Estimates for one run of a model, with open dimensions counted as 1.

    Attributes
    ----------
    flops : int
        Arithmetic operations; a multiply-add counts as two.
    traffic : int
        Bytes that operators read and write, except views.
    """

    flops: int
    traffic: int


class _Sizes(NamedTuple):
    node: Node
    inputs: Sequence[TypeSpec]
    outputs: Sequence[TypeSpec]

    def input(self, number: int) -> int:
        return _elements(self.inputs[number]) if number < len(self.inputs) else 1

    def axis(self, number: int, axis: int) -> int:
        shape = self.inputs[number].shape if number < len(self.inputs) else None
        return _size(shape[axis]) if shape and -len(shape) <= axis < len(shape) else 1

    @property
    def result(self) -> int:
        return sum(_elements(spec) for spec in self.outputs[:1])


class NodeWork(NamedTuple):
    """Estimates for one node in one run, with open dimensions counted as 1.

    Attributes
    ----------
    node : Node
        Its nested graphs are not counted.
    flops : int
        Arithmetic operations; a multiply-add counts as two.
    read, written : int
        Bytes, weights included; 0 for views.
    weights : int
        Bytes of weights among the inputs.
    live : int
        Bytes of all results that are alive while the node runs, the model's inputs included.
    """

    node: Node
    flops: int
    read: int
    written: int
    weights: int
    live: int


def work_of(symbol: PlainGraph, weights: Mapping[str, Any]) -> Work:
    """Estimate the work of one run, without nested graphs.

    Raises
    ------
    GraphError
        The shapes are inconsistent.
    """
    found = works_of(symbol, weights)
    return Work(sum(w.flops for w in found), sum(w.read + w.written for w in found))


def works_of(symbol: PlainGraph, weights: Mapping[str, Any]) -> list[NodeWork]:
    """Estimate the work of each node in one run, in the order of execution; raises as `work_of`."""
    shapes = {name: array.shape for name, array in weights.items()}
    types = {name: np.dtype(array.dtype) for name, array in weights.items()}
    known = infer(symbol, shapes, types, default_dtype=np.dtype(np.float32)).outputs
    nodes = symbol.nodes()
    live = _live(symbol, nodes, known, weights)
    works = []
    for node in nodes:
        if node.is_variable:
            continue
        inputs = [type_of(entry, known) for entry in node.inputs]
        sizes = _Sizes(node, inputs, known[node])
        held = {e.node for e in node.inputs if e.node.is_variable and e.node.name in weights}
        size = sum(_bytes(known[variable][0]) for variable in held)
        works.append(
            NodeWork(node, _operations(sizes), _read(sizes), _written(sizes), size, live[node])
        )
    return works


def _live(
    symbol: PlainGraph,
    nodes: Sequence[Node],
    known: Mapping[Node, Sequence[TypeSpec]],
    weights: Mapping[str, Any],
) -> dict[Node, int]:
    """Return the bytes of results that are alive while each node runs.

    A result is alive from the node that makes it to the last one that reads it or a view of it.
    """
    owner: dict[Node, Node] = {}
    last: dict[Node, int] = {}
    for place, node in enumerate(nodes):
        is_view = node.op in _VIEWS and node.inputs
        owner[node] = owner[node.inputs[0].node] if is_view else node
        for entry in node.inputs:
            last[owner[entry.node]] = place
    for entry in symbol.entries:
        last[owner[entry.node]] = len(nodes)
    sizes = {
        node: 0
        if owner[node] is not node or (node.is_variable and node.name in weights)
        else sum(map(_bytes, known[node]))
        for node in nodes
    }
    ending: dict[int, list[Node]] = {}
    for node, place in last.items():
        ending.setdefault(place, []).append(node)
    # Inputs are there from the beginning.
    now = sum(size for node, size in sizes.items() if node.is_variable)
    found = {}
    for place, node in enumerate(nodes):
        now += 0 if node.is_variable else sizes[node]
        found[node] = now
        now -= sum(sizes[other] for other in ending.get(place, ()))
        if node not in last:
            now -= sizes[node]
    return found


def _operations(sizes: _Sizes) -> int:
    name = sizes.node.op
    if name in _VIEWS or name in _PARTS or name in _MOVES:
        return 0
    if name in _CONVOLUTIONS:
        place = _CONVOLUTIONS[name]
        return 2 * sizes.result * sizes.input(place) // max(sizes.axis(place, 0), 1)
    if name in _TRANSPOSED:
        place = _TRANSPOSED[name]
        return 2 * sizes.input(0) * sizes.input(place) // max(sizes.axis(place, 0), 1)
    if name in _LAYERS:
        return 2 * sizes.result * sizes.input(1) // max(sizes.axis(1, 0), 1)
    if name in _PRODUCTS:
        return 2 * sizes.result * sizes.axis(0, -1)
    if name == "Gemm":
        transposed = sizes.node.attrs.get("transA", "0") == "1"
        return 2 * sizes.result * sizes.axis(0, 0 if transposed else 1)
    if name == "Einsum":
        return 2 * _labels(sizes)
    if name == "Attention" and len(sizes.inputs) > 2:
        return _attention(sizes)
    if name in _RECURRENT:
        steps = sizes.axis(0, 0) * sizes.axis(0, 1)
        return 2 * steps * (sizes.input(1) + (sizes.input(2) if len(sizes.inputs) > 2 else 0))
    if name.startswith("Reduce"):
        return sizes.input(0)
    return sizes.result * _window(sizes.node)


def _labels(sizes: _Sizes) -> int:
    """Return the product of the sizes of all indices of an Einsum."""
    terms = sizes.node.attrs.get("equation", "").partition("->")[0].replace(" ", "").split(",")
    found: dict[str, int] = {}
    for number, term in enumerate(terms):
        for axis, label in enumerate(term.replace("...", "")):
            found[label] = max(found.get(label, 1), sizes.axis(number, axis))
    return math.prod(found.values())


def _attention(sizes: _Sizes) -> int:
    """Return the operations of the two products of ONNX's Attention."""
    heads = [spec.shape for spec in sizes.inputs[1:3]]
    keys = sizes.axis(1, -2)
    if all(shape is not None and len(shape) == 4 for shape in heads):
        queries = sizes.input(0) // max(sizes.axis(0, -1), 1)
        return 2 * queries * keys * (sizes.axis(0, -1) + sizes.axis(2, -1))
    # Three-dimensional inputs have all heads of a row behind each other.
    count = max(int(sizes.node.attrs.get("q_num_heads", "1")), 1)
    rows = sizes.input(0) // max(sizes.axis(0, -1), 1)
    values = sizes.axis(2, -1) // max(int(sizes.node.attrs.get("kv_num_heads", "1")), 1)
    return 2 * rows * keys * (sizes.axis(0, -1) + count * values)


def _window(node: Node) -> int:
    """Return the number of elements in the window of a pooling; 1 for other operators."""
    text = node.attrs.get("kernel_shape") or node.attrs.get("kernel")
    if text is None or "ool" not in node.op:
        return 1
    return math.prod(size or 1 for size in parse_optional_ints(text))


def _read(sizes: _Sizes) -> int:
    if sizes.node.op in _VIEWS:
        return 0
    return _written(sizes) if sizes.node.op in _PARTS else sum(map(_bytes, sizes.inputs))


def _written(sizes: _Sizes) -> int:
    return 0 if sizes.node.op in _VIEWS else sum(map(_bytes, sizes.outputs))


def _size(size: int | None) -> int:
    return 1 if size is None else int(size)


def _elements(spec: TypeSpec) -> int:
    return 1 if spec.shape is None else math.prod(map(_size, spec.shape))


def _bytes(spec: TypeSpec) -> int:
    return 0 if spec.shape is None else _elements(spec) * (spec.dtype.itemsize if spec.dtype else 4)
