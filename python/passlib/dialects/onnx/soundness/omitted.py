"""Inputs that nodes omit at the end of their lists, and outputs that they omit anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.forms import fewest_inputs, first_of_any_number
from passlib.dialects.onnx.soundness.model import versions_of


def drop_omitted(model: Any) -> None:
    """Leave out the empty names at the end of the inputs of nodes, which mean the same.

    ONNX Runtime 1.32 ends the process on LayerNormalization whose last input has an empty name.

    Parameters
    ----------
    model : onnx.ModelProto
    """
    for body, versions in _bodies(model):
        _drop(body, versions)


def name_omitted(model: Any) -> None:
    """Give names to omitted outputs of nodes that have any number of them, such as Split and Loop.

    ONNX Runtime 1.32 ends the process on Split and Loop with one, and refuses If and Scan.

    Parameters
    ----------
    model : onnx.ModelProto
    """
    for body, versions in _bodies(model):
        _name(body, versions)


def _bodies(model: Any) -> Iterator[tuple[Any, Mapping[str, int]]]:
    """Iterate over the main graph and the functions, each with its operator sets."""
    versions = versions_of(model.opset_import)
    yield model.graph, versions
    for function in model.functions:
        yield function, versions_of(function.opset_import) or versions


def _name(body: Any, versions: Mapping[str, int]) -> None:
    omitting = []
    for graph in graphs_within(body):
        for node in graph.node:
            if all(node.output):
                continue
            version = versions.get(schema.plain(node.domain), 0)
            first = first_of_any_number(node.domain, node.op_type, version)
            places = [i for i, name in enumerate(node.output) if i >= first and not name]
            omitting += [(node, place) for place in places]
    if not omitting:
        return
    used = {name for graph in graphs_within(body) for name in _names(graph)}
    number = 0
    for node, place in omitting:
        while f"omitted_{number}" in used:
            number += 1
        node.output[place] = f"omitted_{number}"
        number += 1


def _names(graph: Any) -> Iterator[str]:
    for node in graph.node:
        yield from node.output
    for part in ("input", "initializer"):
        for item in getattr(graph, part, ()):  # those of functions are names
            yield item if isinstance(item, str) else item.name
    for item in getattr(graph, "sparse_initializer", ()):
        yield item.values.name


def _drop(body: Any, versions: Mapping[str, int]) -> None:
    for graph in graphs_within(body):
        for node in graph.node:
            if not node.input or node.input[-1]:
                continue
            version = versions.get(schema.plain(node.domain), 0)
            fewest = fewest_inputs(node.domain, node.op_type, version)
            while fewest is not None and len(node.input) > fewest and not node.input[-1]:
                del node.input[-1]
