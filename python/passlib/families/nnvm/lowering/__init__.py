"""NNVM operators as ONNX: each module here lowers one family of the ``top`` registry.

Operators with the same meaning in MXNet, and those that only MXNet has, are lowered by the
functions of the MXNet dialect.

Source: the operator documentation of NNVM 0.8 (TVM 0.5), ``nnvm.top``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from passlib.errors import UnsupportedError
from passlib.families.nnvm.lowering.layers import table
from passlib.families.nnvm.schema import is_mxnet, saved_version
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node, postorder
from passlib.lowering import Graph, Lowered, Lowerings, TypeSpec, Value, lower_graph
from passlib.lowering.inference import infer_graph
from passlib.lowering.table import LoweringFunction
from passlib.mxnet.dialect import dialect as mxnet

__all__ = ["infer_node", "load_table", "lower"]

_STATES_ARE_INPUTS = 900
"""The first version of MXNet whose files have states of operators as inputs."""

_LAST_AXIS = 905
"""The first version whose argmax and argmin take axis -1 for the last one, not for none."""


class _Both(Lowerings):
    """NNVM's own operators, and MXNet's for names that NNVM does not have."""

    def find(self, operator: str) -> LoweringFunction | None:
        return table.find(operator) or mxnet.lowerings().find(operator)

    def operators(self) -> list[str]:
        return sorted({*table.operators(), *mxnet.lowerings().operators()})


@functools.cache
def load_table() -> Lowerings:
    """Return the table of operators, with every family registered."""
    table.fill(__name__, __path__)
    return _Both("nnvm")


def lower(
    graph: Graph,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
) -> Lowered:
    """Lower a graph; see `passlib.dialects.Dialect.lower`.

    Names with different meanings in NNVM and MXNet are MXNet's in a graph that MXNet wrote, see
    `passlib.families.nnvm.schema.is_mxnet`. NNVM's own normalization and dropout refuse training.
    Raises `UnsupportedError`, for example for ``tvm_op``, whose computation the graph does not
    state.
    """
    attributes = getattr(graph, "attributes", {}).get("attrs", "")
    if is_mxnet((node.op for node in graph.nodes()), attributes):
        _refuse_old(graph.nodes(), saved_version(attributes))
        return mxnet.lower(graph, inputs, params, train=train)
    return lower_graph(graph, load_table(), inputs, params, train=train, complete=_complete)


def _refuse_old(nodes: Sequence[Node], version: int) -> None:
    """Refuse nodes of old files that MXNet upgrades before it runs them, since NNVM does not."""
    for node in nodes:
        lacks = max(mxnet.mutable_inputs(node), default=-1) >= len(node.inputs)
        flattens = node.op in ("argmax", "argmin") and node.attrs.get("axis", "").strip() == "-1"
        if version < _STATES_ARE_INPUTS and lacks:
            what = "its states are not among its inputs"
        elif version < _LAST_AXIS and flattens:
            what = "attribute 'axis' (with value '-1'): meant all axes"
        else:
            continue
        message = f"{blame(node)}: {what}, as MXNet {version} wrote it"
        raise UnsupportedError(f"{message}; dialect='mxnet' reads such files and upgrades them")


def infer_node(node: Node, known: Mapping[str, TypeSpec]) -> list[TypeSpec]:
    """Infer the types of a node's outputs; its inputs are variables of known types.

    Raises `GraphError` if the inputs do not fit the operator.
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
        mxnet.complete_types(node, inputs, outputs)
