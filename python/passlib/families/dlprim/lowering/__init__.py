"""Operators of DLPrimitives as ONNX: each module lowers one family of operators."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from passlib.families.dlprim.lowering.table import table
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, lower_graph

__all__ = ["load_table", "lower"]


@functools.cache
def load_table() -> Lowerings:
    """Return the table of operators, with every family registered."""
    table.fill(__name__, __path__)
    return table


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a graph; see `Dialect.lower`. In training, BatchNorm uses and updates statistics."""
    return lower_graph(graph, load_table(), inputs, params, train=train)
