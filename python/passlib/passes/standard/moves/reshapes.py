"""mergeReshapes: merges operators that only change the shape."""

from __future__ import annotations

from passlib._core import EditableNode, EditableValue
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.book import apply_groups
from passlib.passes.standard.facts.kernels import Fused
from passlib.passes.standard.facts.nodes import Model
from passlib.passes.standard.facts.shapes import Shapes
from passlib.passes.standard.facts.views import VIEWS, add_view, is_view


@graph_pass(
    name="mergeReshapes",
    dialects=["onnx"],
    exact=True,
    triggers=[
        "Reshape",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Tile",
        "Pad",
        "Expand",
        "ReduceSum",
        "ReduceMean",
        "ReduceMax",
        "ReduceMin",
    ],
    joins=Joins(["clean", "simplify"], after="propagateCasts", rounding={"rounding": True}),
)
def merge_reshapes(graph: Graph, *, rounding: bool = False) -> None:
    """Replace chains of operators that keep the order of the elements by one operator or none.

    Also successive Tile, Pad and Expand, and reductions whose axes are added again.

    Parameters
    ----------
    rounding : bool
        Also merge successive reductions of one kind, which may add in another order.
    """
    model = Model(graph)
    shapes = Shapes(model)
    fused = Fused(graph)
    nodes = [node for node in graph.sorted(*VIEWS) if is_view(node, shapes) and node not in fused]
    views = set(nodes)
    for node in nodes:
        if node in model.gone:
            continue
        result = node.outputs[0]
        for source in reversed(_sources(node, views)):
            made = add_view(model, result, source, shapes)
            if made is None:
                continue
            if made == source and result.is_output and (made.node.is_variable or made.is_output):
                # An output that is an input, or another output, needs an operator.
                if not shapes.runs("Identity", result):
                    continue
                made = model.add_like(result, "Identity", [source])
            elif made != source:
                views.add(made.node)
            model.replace(node, made)
            break
    more = ["fuseReductions"] if rounding else []
    apply_groups(graph, "mergeReshapes", *more, kept=fused.names)


def _sources(node: EditableNode, views: set[EditableNode]) -> list[EditableValue]:
    """Return the inputs of chains of at least two operators, nearest first."""
    found = []
    value = node.inputs[0]
    while value.node in views and value.index == 0:
        value = value.node.inputs[0]
        found.append(value)
    return found
