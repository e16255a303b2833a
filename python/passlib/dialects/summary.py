"""Inputs, outputs, operators and weights of a model."""

from __future__ import annotations

import math
from typing import Any

from passlib.dialects.protocol import Dialect, ModelData
from passlib.graph.plain import PlainGraph, operators_of


def operators_in(model: ModelData) -> list[tuple[str, int]]:
    """Return the number of nodes of each operator, the most frequent first."""
    return sorted(operators_of(model.graph).items(), key=lambda item: (-item[1], item[0]))


def weights_in(model: ModelData) -> list[dict[str, Any]]:
    """Return name, dtype, shape and bytes of each weight."""
    return [
        {
            "name": name,
            "dtype": str(array.dtype),
            "shape": list(array.shape),
            "bytes": math.prod(array.shape) * array.dtype.itemsize,
        }
        for name, array in {**model.args, **model.aux}.items()
    ]


def summary_of(family: Dialect, model: ModelData) -> dict[str, Any]:
    """Return the facts of `passlib.inspect`."""
    graph = PlainGraph.of_native(model.graph, model.attributes, family)
    inputs, outputs = family.interface(graph, model)
    weights, operators = weights_in(model), operators_in(model)
    return {
        "dialect": family.name,
        "inputs": [each._asdict() for each in inputs],
        "outputs": [each._asdict() for each in outputs],
        "nodes": sum(count for _, count in operators),
        "operators": dict(operators),
        "weights": len(weights),
        "weight_bytes": sum(each["bytes"] for each in weights),
        **family.about(model),
    }
