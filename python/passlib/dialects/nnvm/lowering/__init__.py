"""NNVM operators as ONNX: each module here lowers one family of the ``top`` registry.

Operators that mean the same in MXNet, and all others that only MXNet has, are lowered by its
functions.

Source: the operator documentation of NNVM 0.8 (TVM 0.5), ``nnvm.top``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from passlib.dialects.mxnet import lowering as mxnet
from passlib.dialects.mxnet.inference.parameter_shapes import complete as complete_mxnet
from passlib.dialects.mxnet.lower import lower as lower_mxnet
from passlib.dialects.nnvm.lowering.table import table
from passlib.dialects.nnvm.operators import auxiliary_inputs, is_mxnet, saved_version
from passlib.errors import UnsupportedError
from passlib.graph.node import Entry, Node, postorder
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, Value, lower_graph
from passlib.lowering.inference import infer_graph
from passlib.lowering.table import LoweringFunction

__all__ = ["infer_node", "load_table", "lower"]

_STATES_ARE_INPUTS = 900
"""The version of MXNet from which on states of operators are inputs in files."""

_LAST_AXIS = 905
"""The version from which on axis -1 is the last one for argmax and argmin; before, it was none."""


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
        _refuse_old(symbol.nodes(), saved_version(attributes))
        return lower_mxnet(symbol, inputs, params, train=train)
    return lower_graph(symbol, both, inputs, params, train=train, complete=_complete)


def _refuse_old(nodes: Sequence[Node], version: int) -> None:
    """Refuse what MXNet changes in an old file before it runs it; this dialect changes nothing."""
    states = auxiliary_inputs()
    for node in nodes:
        lacks = max(states.get(node.op, ()), default=-1) >= len(node.inputs)
        flattens = node.op in ("argmax", "argmin") and node.attrs.get("axis", "").strip() == "-1"
        if version < _STATES_ARE_INPUTS and lacks:
            what = "its states are not among its inputs"
        elif version < _LAST_AXIS and flattens:
            what = "attribute 'axis' (with value '-1'): meant all axes"
        else:
            continue
        message = f"node {node.name!r} ({node.op}): {what}, as MXNet {version} wrote it"
        raise UnsupportedError(
            f"{message}; dialect='mxnet' reads such files, and brings them up to date"
        )


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
