"""Types of values in ONNX graphs: what stays true after a pass, and what must be found anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passlib._optional import require
from passlib.node import VARIABLE

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.document import Document
    from passlib.dialects.onnx.naming import Names

__all__ = ["complete_types", "keep_annotations"]


def keep_annotations(
    graph: Any,
    names: Names,
    nodes: Sequence[NodeTuple],
    claims: Mapping[int, str],
    document: Document,
    changed: set[str],
) -> dict[str, list[Any]]:
    """Choose what a graph says of its values that is still true, under their present names.

    A value is the same as before if its node has the operator and the attributes that it had.

    Parameters
    ----------
    graph : onnx.GraphProto
        As in the file.
    names : Names
    nodes
        As `_core.Graph` gives them.
    claims : mapping of int to str
    document : Document
    changed : set of str
        Constants with new elements, by `ID`.

    Returns
    -------
    dict of str to list
        The fields ``value_info`` and ``quantization_annotation``.
    """
    kept: dict[str, list[Any]] = {"value_info": [], "quantization_annotation": []}
    if not graph.value_info and not graph.quantization_annotation:
        return kept
    now = _present_names(names, nodes, claims, document, changed)
    gone = {name for node in graph.node for name in node.output}
    gone.update(value.name for value in (*graph.input, *graph.initializer))
    gone.update(tensor.values.name for tensor in graph.sparse_initializer)
    gone -= now.keys()
    for value in graph.value_info:
        name = value.name
        if name not in gone:
            kept["value_info"].append(_with_name(value, "name", now.get(name, name)))
    for annotation in graph.quantization_annotation:
        parameters = annotation.quant_parameter_tensor_names
        if annotation.tensor_name in gone or any(entry.value in gone for entry in parameters):
            continue
        name = now.get(annotation.tensor_name, annotation.tensor_name)
        made = _with_name(annotation, "tensor_name", name)
        if any(now.get(entry.value, entry.value) != entry.value for entry in parameters):
            made = type(annotation).FromString(made.SerializeToString())
            for entry in made.quant_parameter_tensor_names:
                entry.value = now.get(entry.value, entry.value)
        kept["quantization_annotation"].append(made)
    return kept


def _present_names(
    names: Names,
    nodes: Sequence[NodeTuple],
    claims: Mapping[int, str],
    document: Document,
    changed: set[str],
) -> dict[str, str]:
    """Map the file's name of each value that is still there to its present one."""
    now = {}
    for position, key in claims.items():
        node = nodes[position]
        if node[0] == VARIABLE:
            if key in document.inputs:
                now[str(document.inputs[key][0].name)] = names.of[position, 0]
            elif key not in changed:
                now[document.tensors[key].name] = names.of[position, 0]
            continue
        original = document.nodes[key]
        if original.proto.op_type != node[0] or original.attrs != node[2]:
            continue
        for index, name in enumerate(original.proto.output):
            if name:
                now[str(name)] = names.of[position, index]
    return now


def _with_name(message: Any, field: str, name: str) -> Any:
    if getattr(message, field) == name:
        return message
    made = type(message)()
    made.CopyFrom(message)
    setattr(made, field, name)
    return made


def complete_types(model: Any, names: set[str]) -> None:
    """Find the types of the named outputs of a model, which have none, by ONNX's inference.

    What the inference does not know stays without a type.
    """
    if not names:
        return
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        inferred = inference.infer_shapes(model)
    except (inference.InferenceError, RuntimeError, ValueError):
        return
    found = {value.name: value for value in (*inferred.graph.output, *inferred.graph.value_info)}
    for value in model.graph.output:
        if value.name in names and value.name in found and found[value.name].HasField("type"):
            value.type.CopyFrom(found[value.name].type)
