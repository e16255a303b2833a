"""ONNX's inference, in this process, on models whose nodes are sound."""

from __future__ import annotations

from typing import Any, Final

from passlib.dialects.onnx.messages import graphs_within
from passlib.dialects.onnx.soundness.growth import growing_nodes
from passlib.dialects.onnx.soundness.model import check_model, versions_of
from passlib.dialects.onnx.soundness.propagation import followed_nodes, rename_operators
from passlib.dialects.onnx.soundness.untyped import untyped_nodes
from passlib.errors import GraphError
from passlib.files.optional import require

__all__ = ["inferred", "open_sizes", "unsafe_to_infer"]

_MOST_ROUNDS: Final = 8
"""How often sizes that were found may lead to further ones."""

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
    check_model(model)
    open_sizes(model)
    versions = versions_of(model.opset_import)
    graphs = list(graphs_within(model.graph))
    skipped = sorted({*growing_nodes(model, graphs, versions), *untyped_nodes(model, graphs)})
    found, graphs = _around(model, graphs, skipped, data=False)
    follows = False
    for _ in range(_MOST_ROUNDS):
        # Types that the last round found may show that a node is harmless.
        unsafe = sorted(
            {
                *growing_nodes(found, graphs, versions),
                *untyped_nodes(found, graphs),
                *(followed_nodes(found, graphs) if data else ()),
            }
        )
        if unsafe == skipped and follows == data:
            break
        skipped, follows = unsafe, data
        found, graphs = _around(found, graphs, unsafe, data=data)
    return found


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
