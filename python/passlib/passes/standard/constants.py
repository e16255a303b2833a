"""constantsToWeights and weightsToConstants: turn Constant nodes into weights, and back."""

from __future__ import annotations

import json
from collections.abc import Callable

from passlib._core import EditableGraph, EditableNode
from passlib.dialects.onnx.attributes import ABSENT, CAPTURED, FORMAL, ID, OPAQUE, OUTER
from passlib.dialects.onnx.nested import constant_array
from passlib.dialects.onnx.reading import document_of
from passlib.dialects.onnx.tensors import CODES
from passlib.graph.names import NameSource
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import is_constant

_Way = list[tuple[EditableGraph, EditableNode]]
"""The graphs around a nested graph, from the outside, each with the node that leads on."""


@graph_pass(name="constantsToWeights", dialects=["onnx"])
def constants_to_weights(graph: Graph, *, nested: bool = True) -> None:
    """Turn Constant nodes into initializers, so that they are weights of the model.

    Parameters
    ----------
    nested : bool
        Also turn constants and weights of nested graphs into weights of the model, which the nested
        graphs capture, so that patterns can read them.
    """
    for node in graph.nodes:
        if node.name in graph.args and node.attrs.get(ID, "").isdigit():
            del node.attrs[ID]
    if nested:
        lift_constants(graph, lambda node: True)


def lift_constants(graph: Graph, wanted: Callable[[EditableNode], bool]) -> None:
    """Turn constants and weights of nested graphs into weights, which the nested graphs capture.

    ``wanted``: which of these variables.
    """
    _Lifting(graph, wanted).run()


class _Lifting:
    def __init__(self, graph: Graph, wanted: Callable[[EditableNode], bool]) -> None:
        self._graph = graph
        self._wanted = wanted
        self._document = document_of(graph.own_attributes)
        self._names = NameSource({node.name for node in graph.nodes})

    def run(self) -> None:
        main: EditableGraph = self._graph
        pending: list[tuple[_Way, EditableGraph]] = [
            ([(main, node)], nested) for node, nested in _nested(main)
        ]
        inside = list(pending)
        while pending:
            way, graph = pending.pop()
            self._names.used.update(node.name for node in graph.nodes)
            deeper = [([*way, (graph, node)], nested) for node, nested in _nested(graph)]
            pending += deeper
            inside += deeper
        for way, graph in inside:
            for node in graph.nodes:
                is_seen = node.is_variable and ID in node.attrs and OPAQUE not in node.attrs
                if is_seen and self._wanted(node):
                    self._lift(way, graph, node)

    def _lift(self, way: _Way, graph: EditableGraph, node: EditableNode) -> None:
        value = node.outputs[0]
        if node.name == ABSENT or value.is_output:
            return
        array = constant_array(self._document, node.attrs[ID])
        if array is None or array.dtype.name not in CODES:
            return
        name = self._names.fresh(node.name)
        outer = self._graph.add_parameter(name, array)
        for number, (around, owner) in enumerate(way):
            slot = len(owner.inputs)
            captured = int(owner.attrs.get(CAPTURED, 0))
            owner.attrs.setdefault(FORMAL, str(slot - captured))
            owner.attrs[CAPTURED] = str(captured + 1)
            around.set_inputs(owner, [*owner.inputs, outer.outputs[0]])
            within = way[number + 1][0] if number + 1 < len(way) else graph
            outer = within.add_variable(name, {OUTER: str(slot)})
        graph.replace(value, outer.outputs[0])
        graph.remove(node)


def _nested(graph: EditableGraph) -> list[tuple[EditableNode, EditableGraph]]:
    return [(node, nested) for node in graph.nodes for nested in node.subgraphs]


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
