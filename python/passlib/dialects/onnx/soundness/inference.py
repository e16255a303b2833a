"""ONNX's inference, in this process, on models whose nodes are sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from passlib.dialects.onnx.messages import copy_of, graphs_within
from passlib.dialects.onnx.soundness.corrected import (
    Corrections,
    corrections,
    put,
    questionable,
    questionable_calls,
)
from passlib.dialects.onnx.soundness.growth import growing_nodes
from passlib.dialects.onnx.soundness.model import check_model, versions_of
from passlib.dialects.onnx.soundness.propagation import followed_nodes, rename_operators
from passlib.dialects.onnx.soundness.untyped import untyped_nodes
from passlib.errors import GraphError
from passlib.files.optional import require

_MOST_ROUNDS: Final = 8
"""How often sizes that were found may lead to further ones."""

_MOST_CORRECTIONS: Final = 16
"""How often a corrected shape may lead to the correction of a further one."""

_UNKNOWN: Final = "passlib: an operator without rules"


def open_sizes(model: Any) -> None:
    """Remove negative sizes, which stand for unknown ones, from the stated types of a model."""
    for graph in graphs_within(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _innermost(value.type).tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.ClearField("dim_value")


def _innermost(kind: Any) -> Any:
    """Return the type of the elements of sequences, optional values and maps."""
    while True:
        field = kind.WhichOneof("value")
        if field in ("sequence_type", "optional_type"):
            kind = getattr(kind, field).elem_type
        elif field == "map_type":
            kind = kind.map_type.value_type
        else:
            return kind


def inferred(model: Any, *, data: bool = False) -> Any:
    """Return a model with the types of its values by ONNX's inference, or itself if that fails.

    Where ONNX Runtime computes other shapes, the model states those, or leaves them open.

    Parameters
    ----------
    model : onnx.ModelProto
        Loses its negative sizes.
    data : bool
        Compute shapes that are values of the model, too.

    Raises
    ------
    GraphError
        See `check_model`; or inference needs more memory than there is.
    """
    return inferred_with_disputes(model, data=data)[0]


def inferred_with_disputes(model: Any, *, data: bool = False) -> tuple[Any, frozenset[str]]:
    """Return what `inferred` does, and the values for which ONNX's inference finds other types.

    Parameters and errors are those of `inferred`.
    """
    settled = _settled(model, data=data)
    return settled.found, _different(settled.plain, settled.found)


def without_disputes(model: Any) -> Any:
    """Copy a model, without the operators that ONNX's inference gets wrong; None if it has none.

    The copy states what ONNX Runtime computes instead. Errors are those of `inferred`.
    """
    settled = _settled(model, data=False)
    if settled.stated is None:
        return None
    places = sorted(settled.fixed)
    graphs = list(graphs_within(settled.stated.graph))
    rename_operators(graphs, places, [_UNKNOWN] * len(places))
    return settled.stated


class _Settled(NamedTuple):
    """A model with types by ONNX's inference, and with the right ones.

    Attributes
    ----------
    plain, found : onnx.ModelProto
    stated : onnx.ModelProto or None
        The original with corrected types stated in it, if there are any.
    fixed : dict of (int, int) to list
        See `corrections`.
    """

    plain: Any
    found: Any
    stated: Any
    fixed: Corrections


def _settled(model: Any, *, data: bool) -> _Settled:
    check_model(model)
    open_sizes(model)
    versions = versions_of(model.opset_import)
    graphs = list(graphs_within(model.graph))
    fixed: Corrections = {
        (number, place): [None] * len(graphs[number].node[place].output)
        for number, place in questionable_calls(model, graphs)
    }
    asked = questionable(graphs)
    found, found_graphs = _in_rounds(model, graphs, versions, sorted(fixed), data=data)
    plain, stated = found, None
    for round_ in range(_MOST_CORRECTIONS):
        new = corrections(found_graphs, asked, versions.get("", 1), fixed) if asked else {}
        if not new:
            break
        if round_ == _MOST_CORRECTIONS - 1:
            # What comes before the first of them in the main graph holds.
            first = min(new)
            rest = [place for place in asked if place >= first or first[0]]
            new = {(n, place): [None] * len(graphs[n].node[place].output) for n, place in rest}
        fixed |= new
        stated = copy_of(model)
        stated_graphs = list(graphs_within(stated.graph))
        put(stated_graphs, fixed)
        found, found_graphs = _in_rounds(stated, stated_graphs, versions, sorted(fixed), data=data)
    return _Settled(plain, found, stated, fixed)


def _different(left: Any, right: Any) -> frozenset[str]:
    """Return the values whose types differ in two models."""
    if left is right:
        return frozenset()
    types = [
        {
            value.name: value.type
            for graph in graphs_within(model.graph)
            for value in (*graph.value_info, *graph.output)
        }
        for model in (left, right)
    ]
    return frozenset(name for name, kind in types[0].items() if types[1].get(name) != kind)


def _in_rounds(
    model: Any,
    graphs: list[Any],
    versions: Mapping[str, int],
    left_out: list[tuple[int, int]],
    *,
    data: bool,
) -> tuple[Any, list[Any]]:
    """Infer types until nothing new is found, without the nodes that are left out."""
    unsafe = {*left_out, *growing_nodes(model, graphs, versions), *untyped_nodes(model, graphs)}
    skipped = sorted(unsafe)
    found, graphs = _around(model, graphs, skipped, data=False)
    follows = False
    for _ in range(_MOST_ROUNDS):
        # Types that the last round found may show that a node is harmless.
        unsafe = {*left_out, *growing_nodes(found, graphs, versions)}
        unsafe.update(untyped_nodes(found, graphs))
        if data:
            unsafe.update(followed_nodes(found, graphs))
        if sorted(unsafe) == skipped and follows == data:
            break
        skipped, follows = sorted(unsafe), data
        found, graphs = _around(found, graphs, skipped, data=data)
    return found, graphs


def unsafe_to_infer(model: Any) -> Any:
    """Return a node through which ONNX's code must not infer types; None if there is none.

    Parameters
    ----------
    model : onnx.ModelProto
        With sound nodes. Loses its negative sizes.
    """
    graphs = list(graphs_within(model.graph))
    found = growing_nodes(model, graphs, versions_of(model.opset_import))
    if not found and untyped_nodes(model, graphs):
        known = inferred(model)
        found = untyped_nodes(known, list(graphs_within(known.graph)))
    return graphs[found[0][0]].node[found[0][1]] if found else None


def _around(
    model: Any, graphs: list[Any], unsafe: list[tuple[int, int]], *, data: bool
) -> tuple[Any, list[Any]]:
    """Infer types, but not through some of the nodes; return a model and its graphs."""
    names = rename_operators(graphs, unsafe, [_UNKNOWN] * len(unsafe))
    found = _once(model, data=data)
    rename_operators(graphs, unsafe, names)
    if found is model:
        return model, graphs
    # Inference adds no graphs, so a model without nested ones needs no search for them.
    found_graphs = list(graphs_within(found.graph)) if len(graphs) > 1 else [found.graph]
    rename_operators(found_graphs, unsafe, names)
    return found, found_graphs


def _once(model: Any, *, data: bool) -> Any:
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        return inference.infer_shapes(model, data_prop=data)
    except (inference.InferenceError, RuntimeError, ValueError, IndexError, OverflowError):
        return model
    except MemoryError as error:
        raise GraphError("type inference of this model needs more memory than there is") from error
