"""Operators of libraries as ONNX nodes in a domain of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from passlib.dialects.inference import infer
from passlib.dialects.operator_types import Rules, handed_attributes, infer_node
from passlib.lowering import Graph, Lowerings, TypeSpec
from passlib.lowering.builder import LIBRARIES
from passlib.lowering.operation import Operation
from passlib.lowering.types import Value
from passlib.mxnet.lowering import table_for
from passlib.mxnet.schema.registry import library_rules

ATTRIBUTES: Final = "attributes"
"""The attribute of such a node that holds the operator's own, as a JSON object of texts."""


def table_with_libraries(symbol: Graph) -> Lowerings:
    """Return the table for a symbol, in the mode that is set, with operators of libraries."""
    rules: dict[str, Rules] = {}
    waiting = [symbol]
    while waiting:
        graph = waiting.pop()
        rules.update(library_rules(graph))
        waiting.extend(inner for node in graph.nodes() for inner in node.subgraphs)
    found = table_for(symbol)
    if not rules:
        return found
    # A copy, because the table is one for all graphs.
    owned = found.without(rules).copy()
    for name, operator in rules.items():
        owned.register(name)(partial(_lower, operator))
    return owned


def _lower(operator: Rules, operation: Operation) -> Sequence[Value]:
    """Add the node; an input that the operator writes to has an output with its new content."""
    node = operation.node
    if not operator.infers:
        operation.unsupported(
            "runs a subgraph of a library, which ONNX files cannot hold; run the model with "
            "Model.run"
        )
    attributes = handed_attributes(node)
    known = [TypeSpec(value.dtype, value.shape) for value in operation.inputs]
    _, outputs = infer_node(node, operator, attributes, known, lambda *given: infer(*given).outputs)
    written = sorted(operator.mutated_inputs(attributes))
    made = operation.emit(
        node.op,
        *operation.inputs,
        outputs=len(outputs) + len(written),
        types=[*outputs, *(known[position] for position in written)],
        domain=LIBRARIES,
        **{ATTRIBUTES: json.dumps(attributes)},
    )
    for position, value in zip(written, made[len(outputs) :], strict=True):
        operation.update(position, value)
    return made[: len(outputs)]
