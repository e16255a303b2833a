"""weightsToConstants: turns weights into Constant nodes."""

from __future__ import annotations

import json

from passlib.dialects.onnx.attributes import ID
from passlib.graph.names import NameSource
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import is_constant


@graph_pass(name="weightsToConstants", dialects=["onnx"])
def weights_to_constants(graph: Graph, *, largest: int = 64) -> None:
    """Turn small initializers into Constant nodes.

    Parameters
    ----------
    largest : int
        Maximum number of elements.
    """
    names = NameSource({node.name for node in graph.nodes})
    for node in graph.nodes:
        array = graph.args.get(node.name)
        if array is None or not is_constant(graph, node) or node.attrs.get(ID, "").isdigit():
            continue
        if array.size > largest or node.outputs[0].is_output:
            continue
        value = {"dtype": array.dtype.name, "shape": array.shape, "data": array.ravel().tolist()}
        texts = {"value": json.dumps(value)}
        name = node.name
        made = graph.add_node("Constant", [], texts, name=names.fresh(name))
        graph.replace(node.outputs[0], made.outputs[0])
        del graph.args[name]
        graph.remove(node)
        made.name = name
