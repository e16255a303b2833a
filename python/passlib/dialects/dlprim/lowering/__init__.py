"""Operators of DLPrimitives as ONNX: each module here lowers one family of operators."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from passlib.dialects.dlprim.lowering.table import table
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, lower_graph

__all__ = ["load_table", "lower"]


@functools.cache
def load_table() -> Lowerings:
    """Give the table of operators, every family registered."""
    table.fill(__name__, __path__)
    return table


def lower(
    symbol: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a network to one ONNX model.

    Parameters
    ----------
    symbol : Graph
    inputs : mapping of str to TypeSpec
        Variables that are fed at run time, each with its element type and shape.
    params : mapping of str to numpy.ndarray
        Parameters.
    train : bool
        Lower the forward pass of training: BatchNorm takes the statistics of the batch, and the
        running ones that follow are in ``updates`` of the result.

    Returns
    -------
    Lowered

    Raises
    ------
    GraphError
        Inputs of a node do not fit together.
    UnsupportedError
        An operator, an option or an element type has no faithful translation.
    """
    return lower_graph(symbol, load_table(), inputs, params, train=train)
