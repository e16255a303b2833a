"""One walk over a graph, and the ONNX model made of its result."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from passlib.errors import UnsupportedError
from passlib.files.optional import require
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering.builder import IR_VERSION, LIBRARIES, OPSET
from passlib.lowering.table import Lowerings
from passlib.lowering.types import Lowered, TypeSpec, Value
from passlib.lowering.walk import Complete, Graph, Overriding, Walk


def lower_graph(
    graph: Graph,
    table: Lowerings,
    inputs: Mapping[str, TypeSpec],
    params: Mapping[str, np.ndarray],
    *,
    train: bool = False,
    complete: Complete | None = None,
    overriding: Overriding | None = None,
    spared: Collection[Node] = (),
) -> Lowered:
    """Lower a graph to one ONNX model.

    ``inputs`` are variables that are fed at run time, ``params`` weights; names of weights that the
    graph does not have are ignored. For the rest see `Walk`; here ``complete`` detects inputs that
    do not fit. Raises `GraphError` if the inputs of a node do not fit together, or ``inputs`` names
    something that is not a variable; `UnsupportedError` if an operator, an attribute or an element
    type has no faithful translation.
    """
    walk = Walk(graph, table, train=train, complete=complete, overriding=overriding, spared=spared)
    walk.variables(inputs, params)
    walk.run()
    outputs = _outputs(walk, graph)
    updates = {
        name: walk.builder.copy(value, f"{name}_written") for name, value in walk.updates.items()
    }
    results = [*outputs, *updates.values()]
    # Functions compute all outputs of an operator, also those that nothing needs.
    nodes = _needed(walk.builder.nodes, results)
    used = _used(nodes)
    weights = {name: array for name, array in walk.weights.items() if name in used}
    names = tuple(value.name for value in walk.inputs)
    return Lowered(
        _model(walk, nodes, results, weights),
        weights,
        names,
        tuple(value.name for value in outputs),
        walk.value_of,
        walk.source_of,
        {name: value.name for name, value in updates.items()},
        frozenset(names) - used,
    )


def _needed(nodes: Sequence[Any], results: Sequence[Value]) -> list[Any]:
    """Return the nodes that the results need, in their order, which is that of their values."""
    wanted = {value.name for value in results}
    found = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            wanted |= _used([node])
            found.append(node)
    return found[::-1]


def _used(nodes: Sequence[Any]) -> set[str]:
    """Return the names that nodes take, those in nested graphs included."""
    return {name for node in _with_nested(nodes) for name in node.input}


def _with_nested(nodes: Sequence[Any]) -> Iterator[Any]:
    """Iterate over nodes and those in their nested graphs."""
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting.extend(attribute.g.node)


def _outputs(walk: Walk, graph: Graph) -> list[Value]:
    """Return a computed ONNX value for each output: inputs, weights, repeats through Identity."""
    taken: set[str] = set()
    computed = {name for node in walk.builder.nodes for name in node.output}
    outputs = []
    for entry in graph.entries:
        value = walk.input_of(entry.node, entry)
        value.require(f"output of {blame(entry.node)}")
        if value.name in taken or value.name not in computed:
            value = walk.builder.copy(value, f"{entry.node.name}_output")
            walk.source_of[value.name] = entry.node
        if value.dtype is None:
            raise UnsupportedError(f"{blame(entry.node)}: its element type is unknown")
        taken.add(value.name)
        outputs.append(value)
    return outputs


def _model(
    walk: Walk, nodes: Sequence[Any], outputs: list[Value], weights: Mapping[str, np.ndarray]
) -> Any:
    helper: Any = require("onnx.helper", extra="onnx")
    used = _used(nodes)
    constants = [tensor for name, tensor in walk.builder.initializers.items() if name in used]
    graph = helper.make_graph(
        nodes,
        "main",
        [_value_info(walk, value) for value in walk.inputs],
        [_value_info(walk, value) for value in outputs],
        [*constants, *_declared(walk, weights)],
        value_info=walk.builder.stated(nodes),
    )
    opsets = [helper.make_opsetid("", OPSET)]
    if any(node.domain == LIBRARIES for node in _with_nested(nodes)):
        opsets.append(helper.make_opsetid(LIBRARIES, 1))
    return helper.make_model(
        graph,
        opset_imports=opsets,
        ir_version=IR_VERSION,
        producer_name="passlib",
    )


def _value_info(walk: Walk, value: Value) -> Any:
    if value.dtype is None:
        raise UnsupportedError(f"input {value.name!r}: its element type is unknown")
    return walk.builder.value_info(value)


def _declared(walk: Walk, weights: Mapping[str, np.ndarray]) -> list[Any]:
    """Declare initializers whose data is external."""
    onnx: Any = require("onnx", extra="onnx")
    declared = []
    for name, array in weights.items():
        tensor = onnx.TensorProto(
            name=name,
            dims=array.shape,
            data_type=walk.builder.tensor_type(array.dtype),
            data_location=onnx.TensorProto.EXTERNAL,
        )
        for key, value in (("location", "weights"), ("length", str(array.nbytes))):
            tensor.external_data.add(key=key, value=value)
        declared.append(tensor)
    return declared
