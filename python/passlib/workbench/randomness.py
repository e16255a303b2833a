"""Random operators of models, which get the same seeds in both models of a comparison."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Final

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


def seeded(model: Model) -> Model | None:
    """Return a model whose random operators without a seed have one, by their names.

    Returns None if the model is not one of ONNX or has no single file.
    """
    if model.dialect != "onnx":
        return None
    try:
        content = content_of(model)
    except PasslibError:
        return None
    if content is None:
        return None
    onnx: Any = require("onnx", extra="onnx")
    message = onnx.ModelProto.FromString(content)
    pending = [message.graph]
    while pending:
        for node in pending.pop().node:
            pending.extend(each.g for each in node.attribute if each.HasField("g"))
            in_training = node.op_type == "Dropout" and len(node.input) > 2
            is_random = node.op_type in _RANDOM.split() or in_training
            if not is_random or any(each.name == "seed" for each in node.attribute):
                continue
            kind = "i" if node.op_type == "Dropout" else "f"
            number = zlib.crc32((node.name or node.output[0]).encode()) % _SEEDS
            attribute = node.attribute.add(name="seed")
            attribute.type = getattr(onnx.AttributeProto, "INT" if kind == "i" else "FLOAT")
            setattr(attribute, kind, number)
    return of_content(model, message.SerializeToString())
