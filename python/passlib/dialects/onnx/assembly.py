"""GraphProtos from their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from passlib.dialects.onnx.types import keep_annotations, with_name
from passlib.files.optional import require

if TYPE_CHECKING:
    from passlib._core import NodeTuple
    from passlib.dialects.onnx.document import Document
    from passlib.dialects.onnx.naming import Names
    from passlib.dialects.onnx.settled import SettledValues
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
    settled: SettledValues,
    doubtful: set[str],
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
    settled : SettledValues
    doubtful : set of str
        Gets the names of values whose types may have changed.

    Returns
    -------
    onnx.GraphProto
        The template itself if nothing differs.
    """
    kept = keep_annotations(
        template, names, nodes, claims, document, level.changed, settled, doubtful
    )
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


def describe_outputs(
    template: Any,
    names: Names,
    like: Any,
    origins: Sequence[str | None],
    initializers: Sequence[Any],
    doubtful: set[str],
) -> list[Any]:
    """Describe the outputs of a graph.

    Parameters
    ----------
    template : onnx.GraphProto
        Says the types of values by their names.
    names : Names
    like : onnx.GraphProto or None
        A graph whose outputs have the same types in the same order.
    origins : sequence of (str or None)
        What each output is called in the file if it is computed as there.
    initializers : sequence of onnx.TensorProto
        Of the graph; inference does not know the types of those that are outputs.
    doubtful : set of str
        Gets the names of outputs whose types may have changed.

    Returns
    -------
    list of onnx.ValueInfoProto
        Without a type where nobody said it.
    """
    if like is not None and len(like.output) == len(names.outputs):
        doubtful.update(names.outputs)
        made = []
        for value, name in zip(like.output, names.outputs, strict=True):
            made.append(type(value)())
            made[-1].CopyFrom(value)
            made[-1].name = name
        return made
    if [value.name for value in template.output] == names.outputs == origins:
        return list(template.output)
    described = (*template.input, *template.value_info, *template.output)
    by_name = {value.name: value for value in described}
    onnx: Any = require("onnx", extra="onnx")
    held = {tensor.name: tensor for tensor in initializers}
    in_place = list(template.output) if len(template.output) == len(origins) else []
    made = []
    for number, (name, origin) in enumerate(zip(names.outputs, origins, strict=True)):
        if origin in by_name:
            made.append(with_name(by_name[origin], "name", name))
        elif name in held:
            made.append(onnx.ValueInfoProto(name=name))
            made[-1].type.tensor_type.elem_type = held[name].data_type
            made[-1].type.tensor_type.shape.SetInParent()
            for size in held[name].dims:
                made[-1].type.tensor_type.shape.dim.add(dim_value=size)
        else:
            doubtful.add(name)
            said = in_place[number] if in_place else by_name.get(name)
            made.append(with_name(said or onnx.ValueInfoProto(), "name", name))
    return made
