"""GraphProtos from their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passlib._optional import require
from passlib.dialects.onnx.types import keep_annotations

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.document import Document
    from passlib.dialects.onnx.naming import Names
    from passlib.dialects.onnx.variables import LevelVariables

__all__ = ["describe_outputs", "make_graph"]


def make_graph(
    template: Any,
    protos: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    level: LevelVariables,
    names: Names,
    nodes: Sequence[NodeTuple],
    claims: Mapping[int, str],
    document: Document,
) -> Any:
    """Put a GraphProto together.

    Parameters
    ----------
    template : onnx.GraphProto
        That of the file, or an empty one.
    protos : sequence of onnx.NodeProto
    inputs, outputs : sequence of onnx.ValueInfoProto
    level : LevelVariables
        Has the initializers.
    names : Names
    nodes
        As `_core.Graph` gives them.
    claims : mapping of int to str
        The `ID` of each node that stands for one of the file.
    document : Document

    Returns
    -------
    onnx.GraphProto
        The template itself if nothing differs.
    """
    kept = keep_annotations(template, names, nodes, claims, document, level.changed)
    lists = {
        "node": protos,
        "input": inputs,
        "output": outputs,
        "initializer": level.initializers(),
        "sparse_initializer": level.sparse(),
        **kept,
    }
    different = [
        key for key, items in lists.items() if not _same_items(items, getattr(template, key))
    ]
    if not different:
        return template
    made = type(template)()
    made.CopyFrom(template)
    for key in different:
        field = getattr(made, key)
        del field[:]
        field.extend(lists[key])
    return made


def _same_items(new: Sequence[Any], old: Sequence[Any]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))


def describe_outputs(template: Any, names: Names, like: Any) -> list[Any]:
    """Describe the outputs of a graph.

    Parameters
    ----------
    template : onnx.GraphProto
        Says the types of values by their names.
    names : Names
    like : onnx.GraphProto or None
        A graph whose outputs have the same types in the same order.

    Returns
    -------
    list of onnx.ValueInfoProto
        Without a type where nobody said it.
    """
    if like is not None and len(like.output) == len(names.outputs):
        made = []
        for value, name in zip(like.output, names.outputs, strict=True):
            made.append(type(value)())
            made[-1].CopyFrom(value)
            made[-1].name = name
        return made
    by_name = {value.name: value for value in (*template.value_info, *template.output)}
    if [value.name for value in template.output] == names.outputs:
        return list(template.output)
    onnx: Any = require("onnx", extra="onnx")
    return [by_name.get(name) or onnx.ValueInfoProto(name=name) for name in names.outputs]
