"""Operators of libraries as ONNX nodes in a domain of their own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Final

from passlib.dialects.inference import infer
from passlib.dialects.operator_types import (
    Rules,
    handed_attributes,
    infer_node,
    written_inputs,
)
from passlib.dialects.stated_types import stated_types
from passlib.lowering import Graph, Lowerings, TypeSpec
from passlib.lowering.builder import LIBRARIES
from passlib.lowering.operation import Operation
from passlib.lowering.types import Value
from passlib.mxnet.lowering import table_for
from passlib.mxnet.schema.registry import library_rules

ATTRIBUTES: Final = "attributes"
"""The attribute of such a node that holds the operator's own, as a JSON object of texts."""

TYPES: Final = "subgraph_types"
"""The attribute of a node that runs a subgraph that holds its types, see `StatedTypes`."""


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
    attributes = handed_attributes(node)
    known = [TypeSpec(value.dtype, value.shape) for value in operation.inputs]
    written = written_inputs(node, operator, attributes)
    given = {ATTRIBUTES: json.dumps(attributes)}
    if operator.infers:
        _, outputs = infer_node(
            node, operator, attributes, known, lambda *given: infer(*given).outputs
        )
    else:
        stated = stated_types(node, operator, attributes, known)
        outputs = stated.output_specs()
        given[TYPES] = stated.text(written)
    made = operation.emit(
        node.op,
        *operation.inputs,
        outputs=len(outputs) + len(written),
        types=[*outputs, *(known[position] for position in written)],
        domain=LIBRARIES,
        **given,
    )
    for position, value in zip(written, made[len(outputs) :], strict=True):
        operation.update(position, value)
    return made[: len(outputs)]
