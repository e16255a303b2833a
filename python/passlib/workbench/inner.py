"""Nested graphs of an ONNX file as models of their own: branches of If, bodies of Loop and Scan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.nested import copy_of, graphs_within, refill, rename_values, used_by
from passlib.errors import GraphError, listed
from passlib.files.optional import require

Arrays = Mapping[str, "np.ndarray[Any, Any]"]

NESTING: Final = ("If", "Loop", "Scan")
"""Operators whose nested graphs are looked into."""


def nested_graphs_of(node: Any) -> dict[str, Any]:
    """Return the nested graphs of a node by the names of the attributes; {} for other operators."""
    if node.op_type not in NESTING or node.domain:
        return {}
    graphs = {each.name: each.g for each in node.attribute if each.HasField("g")}
    # Scan had batches and lengths in operator set 8.
    if node.op_type == "Scan" and any(len(g.input) != len(node.input) for g in graphs.values()):
        return {}
    return graphs


def captured_by(graph: Any) -> list[str]:
    """Return the values of outer graphs that a graph reads, each once."""
    holder = require("onnx", extra="onnx").NodeProto()
    holder.attribute.add(name="g").g.CopyFrom(graph)
    return [name for name in dict.fromkeys(used_by(holder)) if name]


def inner_model(outer: Any, graph: Any, arrays: Arrays) -> Any:
    """Return a nested graph as a model whose inputs are its parameters and what it captures.

    Parameters
    ----------
    outer : onnx.ModelProto
        Its operator sets, functions and initializers are used.
    arrays : mapping of str to array
        Values of the inputs, of which the types are taken.

    Raises
    ------
    GraphError
        A type is not known.
    """
    helper = require("onnx.helper", extra="onnx")
    made = type(outer)(ir_version=outer.ir_version, graph=graph)
    made.opset_import.extend(outer.opset_import)
    made.functions.extend(outer.functions)
    own = made.graph
    own.name = own.name or "nested"
    weights = {tensor.name: tensor for tensor in outer.graph.initializer}
    captured = captured_by(graph)
    own.initializer.extend(weights[name] for name in captured if name in weights)
    parameters = [value.name for value in own.input]
    read = [*parameters, *(name for name in captured if name not in weights)]
    unknown = [name for name in read if not isinstance(arrays.get(name), np.ndarray)]
    if unknown:
        raise GraphError(f"no number is known of {listed(unknown)}")
    del own.input[:]
    for name in read:
        own.input.append(typed(name, arrays[name]))
    # A main graph computes each of its outputs, and once.
    computed = {name for node in own.node for name in node.output}
    for value in own.output:
        if value.name not in computed:
            copied = f"{value.name}//out"
            own.node.append(helper.make_node("Identity", [value.name], [copied]))
            value.name = copied
        computed.discard(value.name)
    return made


def typed(name: str, array: np.ndarray[Any, Any]) -> Any:
    """Return the description of an input with the type and the rank of an array."""
    helper = require("onnx.helper", extra="onnx")
    code = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, code, [None] * array.ndim)


def parameters_of(node: Any, graph: Any, inputs: Sequence[Any], number: int = 0) -> dict[str, Any]:
    """Return the parameters of an iteration of a body; {} for a branch of If.

    Parameters
    ----------
    node : onnx.NodeProto
    graph : onnx.GraphProto
    inputs : sequence of array or None
        Of the node, with what is carried to this iteration; None if not known.
    number : int
        Of the iteration.
    """
    values: list[Any] = []
    if node.op_type == "Loop":
        rank = len(graph.input[0].type.tensor_type.shape.dim) if graph.input else 0
        values = [np.full((1,) * rank, number, np.int64), np.array(True), *inputs[2:]]
    elif node.op_type == "Scan":
        count = carried(node, graph)
        values = list(inputs[:count])
        for array, axis, is_backward in zip(inputs[count:], *_scanned(node, graph), strict=True):
            is_known = array is not None and array.shape[axis] > number
            place = -1 - number if is_backward else number
            values.append(np.take(array, place, axis) if is_known else None)
    return {value.name: each for value, each in zip(graph.input, values, strict=False)}


def carried(node: Any, graph: Any) -> int:
    """Return how many values a Loop or Scan carries from iteration to iteration."""
    if node.op_type == "Loop":
        return len(graph.input) - 2
    return len(graph.input) - int(_attribute(node, "num_scan_inputs", 0))


def iterations(node: Any, graph: Any, inputs: Sequence[Any]) -> int | None:
    """Return the most iterations that the inputs of a Loop or Scan lead to; None if not known."""
    if node.op_type == "Loop":
        return None if inputs[0] is None else int(np.asarray(inputs[0]))
    scanned = inputs[carried(node, graph) :]
    sizes = [
        array.shape[axis]
        for array, axis in zip(scanned, _scanned(node, graph)[0], strict=True)
        if array is not None
    ]
    return min(sizes, default=None)


def _scanned(node: Any, graph: Any) -> tuple[list[int], list[int]]:
    """Return the axis, and whether it is read backward, of each input that a Scan goes through."""
    nothing = [0] * (len(graph.input) - carried(node, graph))
    axes = _attribute(node, "scan_input_axes", nothing)
    return list(axes), list(_attribute(node, "scan_input_directions", nothing))


def _attribute(node: Any, name: str, default: Any) -> Any:
    value = require("onnx.helper", extra="onnx").get_node_attr_value
    return value(node, name) if any(each.name == name for each in node.attribute) else default


def as_nested(made: Any, original: Any, outer: Collection[str], prefix: str) -> Any:
    """Return the graph of an inner model as a nested graph again.

    Parameters
    ----------
    original : onnx.GraphProto
        The nested graph that `made` was before, whose parameters are kept.
    outer : collection of str
        Constants of the outer graph.
    prefix : str
        Of the names of new values, which must differ from those of the outer graph.
    """
    graph = copy_of(made.graph)
    del graph.input[:]
    graph.input.extend(original.input)
    own = {tensor.name for tensor in original.initializer}
    own |= {name for node in original.node for name in node.output}
    kept = [t for t in graph.initializer if t.name in own or t.name not in outer]
    refill(graph.initializer, kept)
    new = {tensor.name for tensor in graph.initializer}
    new |= {name for node in graph.node for name in node.output}
    rename_within({name: f"{prefix}{name}" for name in new if "//" in name}, graph)
    return graph


def rename_all(
    graph: Any, names: Mapping[str, str], taken: Collection[str], constants: Mapping[str, Any]
) -> None:
    """Give other names to parameters and captured values of a nested graph, in place.

    Parameters
    ----------
    names : mapping of str to str
        The new names.
    taken : collection of str
        Values of the graph that have such a name get another one.
    constants : mapping of str to onnx.TensorProto
        Of the outer graph. A captured one with such a name becomes one of the nested graph.
    """
    for name in captured_by(graph):
        if name in taken and name not in names and name in constants:
            graph.initializer.append(constants[name])
    own = {
        name
        for each in graphs_within(graph)
        for name in (
            *(value.name for value in (*each.input, *each.initializer)),
            *(output for node in each.node for output in node.output),
        )
    }
    rename_within({**{name: f"after//{name}" for name in own & set(taken)}, **names}, graph)


def rename_within(names: Mapping[str, str], *graphs: Any) -> None:
    """Rename values of graphs and of those nested in them, which lose the types of inner values."""
    for each in graphs_within(*graphs):
        del each.value_info[:]
    rename_values(names, *graphs, inputs=True)


def without_graphs(node: Any) -> Any:
    """Return a node without its nested graphs."""
    made = copy_of(node)
    refill(made.attribute, [each for each in made.attribute if not each.HasField("g")])
    return made


def with_graphs(node: Any, graphs: Mapping[str, Any]) -> Any:
    """Return a node with other nested graphs."""
    made = copy_of(node)
    for each in made.attribute:
        if each.name in graphs:
            each.g.CopyFrom(graphs[each.name])
    return made
