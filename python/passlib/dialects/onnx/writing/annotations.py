"""Annotations of values: those of the file that still hold after a pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from passlib.dialects.onnx.messages import copy_of, value_info, with_name
from passlib.dialects.onnx.writing.level import Level
from passlib.dialects.onnx.writing.naming import Names
from passlib.dialects.onnx.writing.settled import SettledValues
from passlib.graph.node import VARIABLE

__all__ = ["describe_outputs", "keep_annotations"]


def keep_annotations(
    level: Level, names: Names, changed: set[str], settled: SettledValues, doubtful: set[str]
) -> dict[str, list[Any]]:
    """Return the annotations of a graph's values that still hold, under their present names.

    A value is that of the file if its node has the operator and the attributes that it has there.

    Parameters
    ----------
    level : Level
    names : Names
    changed : set of str
        Constants with new elements, by `ID`.
    settled : SettledValues
    doubtful : set of str
        Gets the names of values whose types may have changed, because their inputs have.

    Returns
    -------
    dict of str to list
        The fields ``value_info`` and ``quantization_annotation``.
    """
    graph = level.template
    kept: dict[str, list[Any]] = {"value_info": [], "quantization_annotation": []}
    if not graph.value_info and not graph.quantization_annotation:
        return kept
    now = {}
    for old, key in _remaining(level, changed):
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
            kept["value_info"].append(with_name(value, now.get(name, name)))
    for annotation in graph.quantization_annotation:
        parameters = annotation.quant_parameter_tensor_names
        if annotation.tensor_name in gone or any(entry.value in gone for entry in parameters):
            continue
        name = now.get(annotation.tensor_name, annotation.tensor_name)
        made = with_name(annotation, name, "tensor_name")
        if any(now.get(entry.value, entry.value) != entry.value for entry in parameters):
            made = copy_of(made)
            for entry in made.quant_parameter_tensor_names:
                entry.value = now.get(entry.value, entry.value)
        kept["quantization_annotation"].append(made)
    return kept


def _remaining(level: Level, changed: set[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Iterate over the remaining values by their names in the file, with node and output."""
    document = level.document
    for position, key in level.claims.items():
        node = level.nodes[position]
        if node.op == VARIABLE:
            if key in document.inputs:
                yield str(document.inputs[key][0].name), (position, 0)
            elif key not in changed:
                yield document.tensors[key].name, (position, 0)
            continue
        original = document.nodes[key]
        if original.proto.op_type != node.op or original.attrs != node.attrs:
            continue
        for index, name in enumerate(original.proto.output):
            if name:
                yield str(name), (position, index)


def describe_outputs(
    level: Level,
    names: Names,
    origins: Sequence[str | None],
    initializers: Sequence[Any],
    doubtful: set[str],
) -> list[Any]:
    """Describe the outputs of a graph.

    Parameters
    ----------
    level : Level
    names : Names
    origins : sequence of (str or None)
        The name of each output in the file, if it is computed as there.
    initializers : sequence of onnx.TensorProto
        Of the graph; inference does not infer the types of those that are outputs.
    doubtful : set of str
        Gets the names of outputs whose types may have changed.

    Returns
    -------
    list of onnx.ValueInfoProto
        Without types that are unknown.
    """
    template, copied = level.template, level.copied()
    if copied is not None and len(copied.output) == len(names.outputs):
        doubtful.update(names.outputs)
        return [
            with_name(value, name) for value, name in zip(copied.output, names.outputs, strict=True)
        ]
    if [value.name for value in template.output] == names.outputs == origins:
        return list(template.output)
    described = (*template.input, *template.value_info, *template.output)
    by_name = {value.name: value for value in described}
    held = {tensor.name: tensor for tensor in initializers}
    as_in_file = level.present.outputs is None and level.present.by_place
    in_place = list(template.output) if len(template.output) == len(origins) else []
    in_place = in_place if as_in_file else []
    made = []
    for number, (name, origin) in enumerate(zip(names.outputs, origins, strict=True)):
        if origin in by_name:
            made.append(with_name(by_name[origin], name))
        elif name in held:
            made.append(value_info(name, held[name].data_type, held[name].dims))
        else:
            doubtful.add(name)
            stated = in_place[number] if in_place else by_name.get(name)
            made.append(value_info(name, None, None) if stated is None else with_name(stated, name))
    return made
