"""The cost of a model: operators, bytes, and estimates of arithmetic and memory traffic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

import passlib._core as _core
from passlib.dialects.inference import infer
from passlib.dialects.onnx.reading import document_of
from passlib.graph.node import Entry, Node
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
        size += _core.nested_bytes(document_of(model.symbol.attributes).file, model.symbol.graph)
    return Cost(nodes, size)


def has_nested(symbol: PlainGraph) -> bool:
    """Whether a graph has nested graphs."""
    return any(True for _ in symbol.graph.nodes_with(WITH_GRAPHS))


def rank_of(model: Model, price: Cost, cost: CostName) -> int:
    """Return one measure of a model whose `Cost` is known."""
    if cost in Cost._fields:
        return int(getattr(price, cost))
    return int(getattr(work_of(model.symbol, {**model.args, **model.aux}), cost))


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
        The shapes are inconsistent, in a model of another dialect than ONNX.
    """
    found = works_of(symbol, weights)
    return Work(sum(w.flops for w in found), sum(w.read + w.written for w in found))


def works_of(symbol: PlainGraph, weights: Mapping[str, Any]) -> list[NodeWork]:
    """Estimate the work of each node in one run, in the order of execution; raises as `work_of`."""
    nodes, names = symbol.nodes(), set(weights)
    if symbol.dialect == "onnx":
        file = document_of(symbol.attributes).file
        imports = json.loads(symbol.attributes["opset_import"])
        facts = _core.GraphFacts(file, symbol.graph, imports, dict(weights), stated=True)
        works = facts.works(names)
    else:
        works = _core.works(symbol.graph, _sizes(symbol, weights), names)
    return [
        NodeWork(node, *work)
        for node, work in zip(nodes, works, strict=True)
        if not node.is_variable
    ]


def _sizes(
    symbol: PlainGraph, weights: Mapping[str, Any]
) -> list[list[tuple[list[int] | None, int]]]:
    """Return the sizes of the outputs of each node."""
    shapes = {name: array.shape for name, array in weights.items()}
    types = {name: np.dtype(array.dtype) for name, array in weights.items()}
    known = infer(symbol, shapes, types, default_dtype=np.dtype(np.float32)).outputs
    return [[_size(type_of(Entry(node, i), known)) for i in range(max(node.num_outputs, 1))]
            for node in symbol.nodes()]  # fmt: skip


def _size(spec: TypeSpec) -> tuple[list[int] | None, int]:
    """Return the dimensions, of which open ones are 1, and the bytes of an element."""
    dims = None if spec.shape is None else [1 if d is None else int(d) for d in spec.shape]
    return dims, spec.dtype.itemsize if spec.dtype else 4
