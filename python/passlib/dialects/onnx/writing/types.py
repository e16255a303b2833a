"""Types that graphs state, and types that are inferred again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from passlib.dialects.onnx.nested import copy_of, refill, value_info
from passlib.dialects.onnx.reading import STATED
from passlib.dialects.onnx.soundness.acceptance import states_elements
from passlib.dialects.onnx.soundness.inference import (
    inferred_by_onnx,
    inferred_with_disputes,
)
from passlib.errors import GraphError


def stated_types(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the types, as ``onnx.TypeProto``, that a graph states for values, by name."""
    stated = json.loads(attributes.get(STATED, "{}"))
    return {name: value_info(name, code, sizes).type for name, (code, sizes) in stated.items()}


Renewed = tuple[dict[str, bytes | None], dict[str, bytes]]
"""Serialized types by name: of annotated values, None for unknown ones, and of outputs."""


def renewed_types(
    model: Any,
    doubtful: Iterable[tuple[str, str]],
    stated: Mapping[str, Any],
    original: Callable[[], Any],
    *,
    restated: bool = False,
) -> dict[str, Renewed]:
    """Infer the types of values that may have changed.

    Where ONNX's inference finds what ONNX Runtime does not compute, annotations are removed.
    Outputs of graphs keep their description unless inference contradicts it, and ONNX's did not
    contradict that of the file in the same way. Those without one get what the graph states.
    Result: the types to write instead, by place of the graph.

    Parameters
    ----------
    doubtful : iterable of (str, str)
        Places of graphs in the model, and names of values in them.
    stated : mapping of str to onnx.TypeProto
        Types that the main graph states for values, by name.
    original : callable
        Returns the model of the file, an ``onnx.ModelProto``.
    restated : bool
        A pass stated types of inputs, so that more precise ones of outputs hold no longer.
    """
    wanted: dict[str, set[str]] = {}
    for place, name in doubtful:
        wanted.setdefault(place, set()).add(name)
    bare, disputed = _inferred(model, wanted)
    known = dict(_placed(bare.graph))
    before: dict[str, Any] = {}
    renewed = {}
    for place, graph in _placed(model.graph):
        names = wanted.get(place, set())
        if not names:
            continue
        around = known[place]
        found = {v.name: v.type for v in (*around.value_info, *around.output, *around.input)}
        found = {name: kind for name, kind in found.items() if states_elements(kind)}
        certain = {name: kind for name, kind in found.items() if name not in disputed}
        values = dict.fromkeys((v.name for v in graph.value_info), None)
        values.update((n, certain[n].SerializeToString()) for n in values if n in certain)
        other = [
            v.name
            for v in graph.output
            if v.name in names
            and v.name in certain
            and (restated or not _agree(v.type, found[v.name]))
        ]
        whole = {v.name: v.type for v in graph.output if v.type.tensor_type.HasField("shape")}
        if not before and any(name in whole for name in other):
            file = original()
            names_before = {p: {v.name for v in g.output} for p, g in _placed(file.graph)}
            bare_file = _without(file, names_before)
            with suppress(GraphError):
                before = dict(_placed(inferred_by_onnx(bare_file).graph))
        as_before = {v.name: v.type for v in before[place].output} if place in before else {}
        outputs = {
            name: _with_shape_of(whole.get(name), found[name]).SerializeToString()
            for name in other
            if name not in whole
            or name not in as_before
            or _agree(whole[name], as_before[name])
            or _sizes(as_before[name]) != _sizes(found[name])
        }
        if not place:
            for value in graph.output:
                kind = found.get(value.name, value.type)
                if value.name in stated and _completes(stated[value.name], kind):
                    outputs[value.name] = stated[value.name].SerializeToString()
        renewed[place] = ({n: kind for n, kind in values.items() if n in names}, outputs)
    return renewed


def _inferred(model: Any, wanted: Mapping[str, set[str]]) -> tuple[Any, frozenset[str]]:
    """Infer types regardless of what graphs state for some values; see `inferred_with_disputes`.

    ``wanted``: the values, by place of the graph.
    """
    bare = _without(model, wanted)
    with suppress(GraphError):
        return inferred_with_disputes(bare)
    return bare, frozenset()


def _without(model: Any, wanted: Mapping[str, set[str]]) -> Any:
    """Copy a model without what its graphs state for some values, by place of the graph."""
    bare = copy_of(model)
    for place, graph in _placed(bare.graph):
        names = wanted.get(place, set())
        refill(graph.value_info, [each for each in graph.value_info if each.name not in names])
        for value in graph.output:
            if value.name in names:
                value.ClearField("type")
    return bare


def _placed(graph: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over a graph and those nested in it, each with its place as `_core` names it."""
    pending = [("", graph)]
    while pending:
        place, graph = pending.pop()
        yield place, graph
        for number, node in enumerate(graph.node):
            for attribute in node.attribute:
                nested = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
                pending += [
                    (f"{place}{number}.{attribute.name}[{i}].", inner)
                    for i, inner in enumerate(nested)
                ]


def _completes(stated: Any, known: Any) -> bool:
    """Whether a stated type has the shape that a known type lacks, and does not contradict it."""
    if known.WhichOneof("value") is None:
        return True
    kind = known.tensor_type
    return (
        known.WhichOneof("value") == "tensor_type"
        and not kind.HasField("shape")
        and kind.elem_type in (0, stated.tensor_type.elem_type)
    )


def _agree(stated: Any, new: Any) -> bool:
    """Whether a stated type agrees with an inferred one; then it may be more precise."""
    container = stated.WhichOneof("value")
    while container in ("sequence_type", "optional_type") and container == new.WhichOneof("value"):
        stated, new = (getattr(each, container).elem_type for each in (stated, new))
        container = stated.WhichOneof("value")
    old, kind = stated.tensor_type, new.tensor_type
    return (
        stated.WhichOneof("value") == new.WhichOneof("value") == "tensor_type"
        and old.elem_type == kind.elem_type
        and old.HasField("shape")
        and (not kind.HasField("shape") or _same_sizes(old.shape.dim, kind.shape.dim))
    )


def _with_shape_of(stated: Any, found: Any) -> Any:
    """Return an inferred type, with the stated shape if the inferred one contradicts no shape."""
    if stated is None or found.WhichOneof("value") != "tensor_type":
        return found
    if found.tensor_type.HasField("shape"):
        return found
    made = copy_of(stated)
    made.tensor_type.elem_type = found.tensor_type.elem_type
    return made


def _sizes(kind: Any) -> tuple[int, list[int | None]]:
    tensor = kind.tensor_type
    sizes = [dim.dim_value if dim.HasField("dim_value") else None for dim in tensor.shape.dim]
    return tensor.elem_type, sizes


def _same_sizes(stated: Sequence[Any], new: Sequence[Any]) -> bool:
    return len(stated) == len(new) and all(
        left.dim_value == right.dim_value
        for left, right in zip(stated, new, strict=True)
        if left.HasField("dim_value") and right.HasField("dim_value")
    )
