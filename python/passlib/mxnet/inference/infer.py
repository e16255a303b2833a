"""Inference of the shapes and element types of all nodes of an MXNet symbol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects.operator_types import CustomTypes
from passlib.errors import FormatError, UnsupportedError
from passlib.graph.attribute_text import parse_int, parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering import Graph, Shape, TypeSpec, Value, type_of
from passlib.lowering.inference import infer_graph
from passlib.lowering.walk import Complete
from passlib.mxnet import schema
from passlib.mxnet.inference.default_types import default_types
from passlib.mxnet.inference.outputs.hidden import with_hidden
from passlib.mxnet.inference.parameter_shapes import complete
from passlib.mxnet.inference.unknowns import Waiting, leaving_unknown
from passlib.mxnet.lowering import table_for
from passlib.mxnet.numpy_mode import leaves_sizes_open, mode_of, partial_shape
from passlib.mxnet.schema.library_operator import library_rules
from passlib.mxnet.schema.node_checks import check_nodes

_UNKNOWN = TypeSpec(None, None)


def infer(
    graph: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    types: Mapping[str, np.dtype] | None = None,
    *,
    default_dtype: np.dtype | None = None,
    train: bool = False,
    partial: bool = False,
) -> dict[Node, tuple[TypeSpec, ...]]:
    """Infer the types of all outputs, hidden ones included; see `Dialect.infer`.

    With ``partial``, shapes are unknown that MXNet leaves unknown.
    """
    with mode_of(graph):
        return _infer(graph, shapes, types or {}, default_dtype, train=train, partial=partial)


def _infer(
    symbol: Graph,
    shapes: Mapping[str, Sequence[int] | Shape],
    given: Mapping[str, np.dtype],
    default_dtype: np.dtype | None,
    *,
    train: bool,
    partial: bool,
) -> dict[Node, tuple[TypeSpec, ...]]:
    nodes = symbol.nodes()
    check_nodes(nodes)
    variables = {node.name: node for node in nodes if node.is_variable}
    known = {
        name: TypeSpec(
            _dtype(node, given, ignore_attribute=default_dtype is not None), _shape(node, shapes)
        )
        for name, node in variables.items()
    }
    if default_dtype is not None:
        for name in _lengths(nodes):
            known[name] = known[name]._replace(dtype=known[name].dtype or default_dtype)
    table, rules = table_for(symbol), completing(symbol)
    if partial:
        table, rules = Waiting(table), leaving_unknown(rules)
    found = infer_graph(
        symbol,
        table,
        known,
        rules,
        leaves_sizes_open,
        default=None if default_dtype is None else default_types(nodes, default_dtype),
        train=train,
    )
    outputs: dict[Node, tuple[TypeSpec, ...]] = {}
    for node in nodes:
        values = (found.value_of.get((node, index)) for index in range(_count(node)))
        specs = [_UNKNOWN if v is None else TypeSpec(v.dtype, v.shape) for v in values]
        inputs = [type_of(entry, outputs) for entry in node.inputs]
        outputs[node] = with_hidden(node, inputs, specs)
    return outputs


def _lengths(nodes: Sequence[Node]) -> Iterator[str]:
    """Iterate over variables of lengths: float32 where MXNet has a default, else as the data."""
    for node in nodes:
        if node.op in ("SequenceLast", "SequenceMask", "SequenceReverse"):
            yield from (each.node.name for each in node.inputs[1:] if each.node.is_variable)


def completing(symbol: Graph) -> Complete:
    """Return the rules for all nodes of a symbol: MXNet's own, and those of libraries."""
    operators = library_rules(symbol)
    if not operators:
        return complete
    custom = CustomTypes(operators, infer)

    def complete_node(node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
        rule = custom.complete if node.op in operators else complete
        rule(node, inputs, outputs)

    return complete_node


def _shape(node: Node, shapes: Mapping[str, Sequence[int] | Shape]) -> Shape | None:
    given: Sequence[int | None] | None = shapes.get(node.name)
    if given is None:
        text = node.attrs.get("__shape__")
        if text is None or text == "None":
            return None
        try:
            given = parse_optional_ints(text)
        except ValueError as error:
            raise FormatError(f"variable {node.name!r}: attribute __shape__: {error}") from None
        if not given and not is_np_shape():
            return None
    return partial_shape(given)


def _dtype(node: Node, given: Mapping[str, np.dtype], *, ignore_attribute: bool) -> np.dtype | None:
    if node.name in given:
        return np.dtype(given[node.name])
    text = node.attrs.get("__dtype__")
    if text is None or ignore_attribute:
        return None
    try:
        code = parse_int(text)
        return None if code < 0 else dtypes.from_code(code)
    except (ValueError, UnsupportedError) as error:
        raise FormatError(f"variable {node.name!r}: attribute __dtype__: {error}") from None


def _count(node: Node) -> int:
    """Count all outputs of a node, hidden ones included."""
    if node.is_variable:
        return 1
    operator = schema.find(node.op)
    if operator is None:
        return max(node.num_outputs, 1)
    # Operators that run a subgraph have as many outputs as the node states.
    return operator.num_outputs(node.attrs) or max(node.num_outputs, 1)
