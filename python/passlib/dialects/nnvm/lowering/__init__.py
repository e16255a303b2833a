"""NNVM operators as ONNX: each module here lowers one family of the ``top`` registry.

Operators that mean the same in MXNet, and all others that only MXNet has, are lowered by its
functions.

Source: the operator documentation of NNVM 0.8 (TVM 0.5), ``nnvm.top``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from passlib.dialects.lowering import Graph, Lowered, Lowerings, TypeSpec, Value, lower_graph
from passlib.dialects.lowering_table import LoweringFunction
from passlib.dialects.mxnet import lowering as mxnet
from passlib.dialects.mxnet.parameter_shapes import complete as complete_mxnet
from passlib.dialects.nnvm.lowering.table import table
from passlib.dialects.nnvm.operators import is_mxnet
from passlib.dialects.type_inference import infer_graph
from passlib.node import Entry, Node, postorder

__all__ = ["infer_node", "load_table", "lower"]


class _Both(Lowerings):
    """NNVM's own operators, and MXNet's where NNVM has none of that name."""

    def find(self, operator: str) -> LoweringFunction | None:
        return table.find(operator) or mxnet.load_table().find(operator)

    def operators(self) -> list[str]:
        return sorted({*table.operators(), *mxnet.load_table().operators()})


@functools.cache
def load_table() -> Lowerings:
    """Give the table of operators, every family registered."""
    table.fill(__name__, __path__)
    return _Both("nnvm")


def lower(
    symbol: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a graph to one ONNX model.

    Names that mean one thing in NNVM and another in MXNet are MXNet's in a graph that MXNet
    wrote, see `operators.is_mxnet`.

    Parameters
    ----------
    symbol : Graph
    inputs : mapping of str to TypeSpec
        Variables that are fed at run time, each with its element type and shape.
    params : mapping of str to numpy.ndarray
    train : bool
        Lower as for training, which NNVM's own normalization and dropout refuse.

    Returns
    -------
    Lowered

    Raises
    ------
    GraphError
        Inputs of a node do not fit together.
    UnsupportedError
        An operator, an attribute or an element type has no faithful translation; ``tvm_op`` has
        none at all, for the graph does not say what it computes.
    """
    both = load_table()
    attributes = getattr(symbol, "attributes", {}).get("attrs", "")
    if is_mxnet((node.op for node in symbol.nodes()), attributes):
        return mxnet.lower(symbol, inputs, params, train=train)
    return lower_graph(symbol, both, inputs, params, train=train, complete=_complete)


def infer_node(node: Node, known: Mapping[str, TypeSpec]) -> list[TypeSpec]:
    """Infer the types of a node's outputs.

    Parameters
    ----------
    node : Node
        Its inputs are variables.
    known : mapping of str to TypeSpec
        Their types.

    Raises
    ------
    GraphError
        The inputs do not fit the operator.
    """
    found = infer_graph(_Single(node), load_table(), known, _complete).value_of
    values = [found.get((node, index)) for index in range(max(node.num_outputs, 1))]
    return [TypeSpec(None, None) if v is None else TypeSpec(v.dtype, v.shape) for v in values]


class _Single:
    """The graph of one node."""

    def __init__(self, node: Node) -> None:
        self.entries = (Entry(node),)

    def nodes(self) -> list[Node]:
        return postorder(entry.node for entry in self.entries)


def _complete(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
    if table.find(node.op) is None:
        complete_mxnet(node, inputs, outputs)
