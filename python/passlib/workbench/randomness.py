"""Random operators of models, which get the same seeds in both models of a comparison."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

from passlib.dialects.onnx.nested import graphs_within, sealed
from passlib.dialects.onnx.reading import Content
from passlib.errors import PasslibError, printable
from passlib.files.optional import require
from passlib.graph.node import Node
from passlib.model import Model
from passlib.model.edits import content_of, of_content

_RANDOM: Final = """
    Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike
    _random_exponential _random_gamma _random_normal _random_poisson _random_uniform
    _sample_multinomial _sample_normal _sample_uniform _shuffle
"""

_SEEDS: Final = 1 << 20
"""Number of different seeds, which float32 represents."""


def random_nodes(model: Model) -> list[str]:
    """Return descriptions of the nodes that draw random numbers, nested ones included."""
    return [f"{printable(node.op)} {printable(node.name)!r}" for node in _nodes(model)]


def _nodes(model: Model) -> Iterator[Node]:
    pending = [model.symbol]
    while pending:
        for node in pending.pop().nodes():
            pending.extend(node.subgraphs)
            in_training = node.op == "Dropout" and len(node.inputs) > 2
            if (node.op in _RANDOM.split() or in_training) and "seed" not in node.attrs:
                yield node


def seeded(model: Model, reference: Model | None = None) -> Model | None:
    """Return a model whose random operators without a seed have one, by their names.

    ``reference``: the model that a tool made this one from. Renamed nodes get the seeds of the
    nodes of the reference whose names are gone, in order.

    Returns None if the model is not one of ONNX, or cannot be saved.
    """
    onnx: Any = require("onnx", extra="onnx") if model.dialect == "onnx" else None
    content = _content(model)
    if content is None:
        return None
    message = onnx.ModelProto.FromString(content)
    drawing = list(_drawing(message))
    known = None if reference is None else _content(reference)
    names = {}
    if known is not None:
        names = _renamed(drawing, list(_drawing(onnx.ModelProto.FromString(known))))
    for node in drawing:
        kind = "i" if node.op_type == "Dropout" else "f"
        name = names.get(_name(node), _name(node))
        attribute = node.attribute.add(name="seed")
        attribute.type = getattr(onnx.AttributeProto, "INT" if kind == "i" else "FLOAT")
        setattr(attribute, kind, zlib.crc32(name.encode()) % _SEEDS)
    return of_content(model, sealed(message, content.weights))


def _content(model: Model) -> Content | None:
    """Return an ONNX model as a message; None for other dialects, and if it cannot be saved."""
    if model.dialect != "onnx":
        return None
    try:
        return content_of(model)
    except PasslibError:
        return None


def _drawing(message: Any) -> Iterator[Any]:
    """Yield the nodes that draw random numbers without a seed."""
    for graph in graphs_within(message.graph):
        for node in graph.node:
            in_training = node.op_type == "Dropout" and len(node.input) > 2
            is_random = node.op_type in _RANDOM.split() or in_training
            if is_random and not any(each.name == "seed" for each in node.attribute):
                yield node


def _name(node: Any) -> str:
    return str(node.name or node.output[0])


def _renamed(drawing: Sequence[Any], known: Sequence[Any]) -> dict[str, str]:
    """Return the former names of renamed nodes, by their new names."""
    present = {_name(node) for node in drawing}
    free: dict[str, list[str]] = {}
    for node in known:
        if _name(node) not in present:
            free.setdefault(node.op_type, []).append(_name(node))
    names = {_name(node) for node in known}
    return {
        _name(node): free[node.op_type].pop(0)
        for node in drawing
        if _name(node) not in names and free.get(node.op_type)
    }
