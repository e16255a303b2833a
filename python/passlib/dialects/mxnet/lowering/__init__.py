"""MXNet operators as ONNX: each module here lowers one family of operators."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from passlib.dialects.mxnet.library_operator import library_rules
from passlib.dialects.mxnet.lowering.table import table
from passlib.dialects.mxnet.parameter_shapes import complete
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, lower_graph
from passlib.lowering.inference import infer_graph, leaves_sizes_open

__all__ = ["load_table", "lower", "table_for"]


@functools.cache
def load_table() -> Lowerings:
    """Give the table of operators, every family registered."""
    table.fill(__name__, __path__)
    return table


def table_for(symbol: Graph) -> Lowerings:
    """Give the table without those operators that a library took over."""
    return load_table().without(library_rules(symbol))


def lower(
    symbol: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower an MXNet symbol to one ONNX model.

    Parameters
    ----------
    symbol : Graph
    inputs : mapping of str to TypeSpec
        Variables that are fed at run time, each with its element type and shape.
    params : mapping of str to numpy.ndarray
        Weights and auxiliary states.
    train : bool
        Lower as for training: batch statistics, active dropout.

    Returns
    -------
    Lowered

    Raises
    ------
    GraphError
        Inputs of a node do not fit together.
    UnsupportedError
        An operator, an attribute or an element type has no faithful translation.
    """
    overriding = None
    if any(leaves_sizes_open(node) for node in symbol.nodes()):
        known = {name: TypeSpec(array.dtype, array.shape) for name, array in params.items()}
        overriding = infer_graph(
            symbol, table_for(symbol), {**_of_graph(symbol, known), **inputs}, complete, train=train
        ).overriding
    return lower_graph(
        symbol,
        table_for(symbol),
        inputs,
        params,
        train=train,
        complete=complete,
        overriding=overriding,
    )


def _of_graph(symbol: Graph, known: Mapping[str, TypeSpec]) -> dict[str, TypeSpec]:
    return {
        node.name: known[node.name]
        for node in symbol.nodes()
        if node.is_variable and node.name in known
    }
