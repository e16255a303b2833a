"""Types of values in ONNX graphs: what stays true after a pass, and what must be found anew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from passlib.dialects.onnx.messages import graphs_within
from passlib.files.optional import require
from passlib.graph.node import VARIABLE

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.document import Document
    from passlib.dialects.onnx.naming import Names
    from passlib.dialects.onnx.settled import SettledValues

__all__ = ["keep_annotations", "renew_types", "with_name"]


def keep_annotations(
    graph: Any,
    names: Names,
    nodes: Sequence[NodeTuple],
    claims: Mapping[int, str],
    document: Document,
    changed: set[str],
    settled: SettledValues,
    doubtful: set[str],
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
    settled : SettledValues
    doubtful : set of str
        Gets the names of those values whose types may have changed, for their inputs have.

    Returns
    -------
    dict of str to list
        The fields ``value_info`` and ``quantization_annotation``.
    """
    kept: dict[str, list[Any]] = {"value_info": [], "quantization_annotation": []}
    if not graph.value_info and not graph.quantization_annotation:
        return kept
    now = {}
    for old, key in _still_there(nodes, claims, document, changed):
        now[old] = names.of[key]
        if key not in settled:
            doubtful.add(names.of[key])
    gone = {name for node in graph.node for name in node.output}
    gone.update(value.name for value in (*graph.input, *graph.initializer))
    gone.update(tensor.values.name for tensor in graph.sparse_initializer)
    gone -= now.keys()
    for value in graph.value_info:
        name = value.name
        if name not in gone:
            kept["value_info"].append(with_name(value, "name", now.get(name, name)))
    for annotation in graph.quantization_annotation:
        parameters = annotation.quant_parameter_tensor_names
        if annotation.tensor_name in gone or any(entry.value in gone for entry in parameters):
            continue
        name = now.get(annotation.tensor_name, annotation.tensor_name)
        made = with_name(annotation, "tensor_name", name)
        if any(now.get(entry.value, entry.value) != entry.value for entry in parameters):
            made = type(annotation).FromString(made.SerializeToString())
            for entry in made.quant_parameter_tensor_names:
                entry.value = now.get(entry.value, entry.value)
        kept["quantization_annotation"].append(made)
    return kept


def _still_there(
    nodes: Sequence[NodeTuple],
    claims: Mapping[int, str],
    document: Document,
    changed: set[str],
) -> Iterator[tuple[str, tuple[int, int]]]:
    """Iterate over values by their names in the file, with their nodes and outputs."""
    for position, key in claims.items():
        node = nodes[position]
        if node[0] == VARIABLE:
            if key in document.inputs:
                yield str(document.inputs[key][0].name), (position, 0)
            elif key not in changed:
                yield document.tensors[key].name, (position, 0)
            continue
        original = document.nodes[key]
        if original.proto.op_type != node[0] or original.attrs != node[2]:
            continue
        for index, name in enumerate(original.proto.output):
            if name:
                yield str(name), (position, index)


def with_name(message: Any, field: str, name: str) -> Any:
    """Give a message with another name; the very same one if it has that name."""
    if getattr(message, field) == name:
        return message
    made = type(message)()
    made.CopyFrom(message)
    setattr(made, field, name)
    return made


def renew_types(model: Any, doubtful: set[str]) -> None:
    """Find the types of values, which may have changed, by ONNX's inference.

    What it does not know is no longer said; outputs of graphs are described as in the file unless
    that is a contradiction.

    Parameters
    ----------
    model : onnx.ModelProto
    doubtful : set of str
        Names of values in any of its graphs.
    """
    if not doubtful:
        return
    bare = type(model)()
    bare.CopyFrom(model)
    for graph in graphs_within(bare.graph):
        _replace(graph.value_info, [v for v in graph.value_info if v.name not in doubtful])
        for value in graph.output:
            if value.name in doubtful:
                value.ClearField("type")
    inference: Any = require("onnx.shape_inference", extra="onnx")
    # Where it fails, nothing is known.
    with suppress(inference.InferenceError, RuntimeError, ValueError):
        bare = inference.infer_shapes(bare)
    for graph, inferred in zip(graphs_within(model.graph), graphs_within(bare.graph), strict=True):
        found = {v.name: v.type for v in (*inferred.value_info, *inferred.output)}
        found = {name: kind for name, kind in found.items() if kind.WhichOneof("value")}
        for value in graph.value_info:
            if value.name in doubtful and value.name in found:
                value.type.CopyFrom(found[value.name])
        for value in graph.output:
            if value.name in doubtful and value.name in found:
                _renew(value, found[value.name])
        known = [v for v in graph.value_info if v.name not in doubtful or v.name in found]
        if len(known) < len(graph.value_info):
            _replace(graph.value_info, known)


def _replace(field: Any, items: Sequence[Any]) -> None:
    copies = [type(item).FromString(item.SerializeToString()) for item in items]
    del field[:]
    field.extend(copies)


def _renew(value: Any, kind: Any) -> None:
    """Set the type of an output, unless what is said of it fits, which may say more."""
    said = value.type.tensor_type
    new = kind.tensor_type
    if (
        value.type.WhichOneof("value") == kind.WhichOneof("value") == "tensor_type"
        and said.elem_type == new.elem_type
        and said.HasField("shape")
        and _fits(said.shape.dim, new.shape.dim if new.HasField("shape") else None)
    ):
        return
    value.type.CopyFrom(kind)


def _fits(said: Sequence[Any], new: Sequence[Any] | None) -> bool:
    if new is None:
        return True
    return len(said) == len(new) and all(
        left.dim_value == right.dim_value
        for left, right in zip(said, new, strict=True)
        if left.HasField("dim_value") and right.HasField("dim_value")
    )
