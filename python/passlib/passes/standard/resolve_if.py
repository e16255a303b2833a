"""resolveIf: branches that are always taken, and loops of a known count of 0 or 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib._core import EditableGraph, EditableNode, EditableValue
from passlib.dialects.onnx.attributes import ABSENT, FORMAL, ID, OUTER
from passlib.dialects.onnx.nested import constant_array, parameter_rank
from passlib.dialects.onnx.reading import document_of
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, given, operator
from passlib.passes.standard.facts.ranks import fails_with_rank
from passlib.passes.standard.facts.shapes import Shapes


@graph_pass(
    name="resolveIf",
    dialects=["onnx"],
    exact=True,
    triggers=["If", "Loop"],
    joins=Joins(["clean", "simplify"], after="foldConstants"),
)
def resolve_if(graph: Graph) -> None:
    """Replace If with a known condition by its branch, and Loop of one round by its body."""
    resolving = _Resolving(graph)
    pending = [node for node in graph.sorted() if node.subgraphs]
    while pending:
        pending += resolving.resolve(pending.pop())


class _Resolving:
    """One run of the pass."""

    def __init__(self, graph: Graph) -> None:
        self._model = Model(graph)
        self._graph = graph
        self._document = document_of(graph.own_attributes)
        # As long as nothing is replaced: the order of the nodes, and what is known of their shapes.
        self._known: tuple[list[EditableNode], Shapes] | None = None

    def resolve(self, node: EditableNode) -> list[EditableNode]:
        """Replace one node if that is possible; return the nodes with nested graphs it had."""
        if node in self._model.gone:
            return []
        if operator(node) == "If":
            condition = self._model.scalar(node.inputs[0])
            if condition is not None:
                return self._take_branch(node, "then_branch" if condition else "else_branch")
            if self._must_squeeze(node):
                return self._take_branch(node, "then_branch")
        elif operator(node) == "Loop":
            count = self._count(node)
            if count == 0:
                return self._skip(node)
            if count == 1:
                return self._run_once(node)
        return []

    def _take_branch(self, node: EditableNode, branch: str) -> list[EditableNode]:
        number = _number_of(node, branch)
        results, inside = self._absorb(node, number, {})
        self._replace(node, results)
        return inside

    def _must_squeeze(self, node: EditableNode) -> bool:
        """Whether a model fails if an axis is not squeezed, which is so if its size is not 1.

        Exporters write this for squeezing an axis of an open size. If all that the axis leads to
        fails, the Squeeze without the condition fails just as well.
        """
        source = self._squeezed(node)
        if source is None:
            return False
        if self._known is None:
            self._known = self._graph.sorted(), Shapes(self._model)
        order, shapes = self._known
        rank = shapes.rank(source)
        if rank is None:
            return False
        return fails_with_rank(node.outputs[0], rank, order, shapes, self._constant)

    def _replace(self, node: EditableNode, values: list[EditableValue]) -> None:
        self._known = None
        self._model.replace(node, values)

    def _squeezed(self, node: EditableNode) -> EditableValue | None:
        """Return the value that one branch squeezes, and the other returns as it is."""
        if node.num_outputs != 1 or not node.outputs[0].uses:
            return None
        sources = []
        for branch, name in (("then_branch", "Squeeze"), ("else_branch", "Identity")):
            graph = node.subgraphs[_number_of(node, branch)]
            made = graph.outputs[0].node
            if operator(made) != name or len([n for n in graph.nodes if not n.is_variable]) != 1:
                return None
            outer = made.inputs[0].node
            if OUTER not in outer.attrs:
                return None
            sources.append(node.inputs[int(outer.attrs[OUTER])])
        return sources[0] if sources[0] == sources[1] else None

    def _count(self, node: EditableNode) -> int | None:
        """Return how often a loop is run if that is known to be 0 or 1."""
        most, going_on = given(node, 0), given(node, 1)
        bound = self._model.scalar(most)
        if going_on is not None:
            start = self._model.scalar(going_on)
            if start is None:
                return 0 if bound is not None and bound <= 0 else None
            if not start:
                return 0
        if bound is not None and bound <= 1:
            return max(int(bound), 0)
        again = node.subgraphs[0].outputs[0].node
        stops = self._constant(again)
        once = stops is not None and stops.size == 1 and not stops.any()
        return 1 if once and (most is None or bound is not None) else None

    def _skip(self, node: EditableNode) -> list[EditableNode]:
        carried = list(node.inputs[2 : integer_of(node)])
        if any(value.uses or value.is_output for value in node.outputs[len(carried) :]):
            return []  # the sizes of empty collected results are not known
        self._replace(node, carried)
        return []

    def _run_once(self, node: EditableNode) -> list[EditableNode]:
        body = node.subgraphs[0]
        carried = list(node.inputs[2 : integer_of(node)])
        parameters = _parameters(body)
        if len(parameters) != len(carried) + 2 or any(
            value.node.name == ABSENT for value in carried
        ):
            return []
        if not self._can_collect(node.outputs[len(carried) :]):
            return []
        first = np.zeros(self._sizes_of(parameters[0]), np.int64)
        start = np.ones(self._sizes_of(parameters[1]), np.bool_)
        values = {
            parameters[0]: self._model.add_constant(f"{node.name}_round", first),
            parameters[1]: self._model.add_constant(f"{node.name}_condition", start),
        }
        values.update(zip(parameters[2:], carried, strict=True))
        results, inside = self._absorb(node, 0, values)
        collected = [self._collected(node, value) for value in results[1 + len(carried) :]]
        # Listed before the loop goes, and with it perhaps one of them.
        unused = [results[0].node, *(value.node for value in values.values())]
        self._replace(node, [*results[1 : 1 + len(carried)], *collected])
        self._model.remove_unused(unused)
        return inside

    def _sizes_of(self, parameter: EditableNode) -> tuple[int, ...]:
        """Return the sizes of a parameter that holds one element, by its stated rank."""
        return (1,) * parameter_rank(self._document, parameter.attrs.get(ID, ""))

    def _can_collect(self, results: Sequence[EditableValue]) -> bool:
        """Whether Unsqueeze can make lists of one round of these results."""
        if not results:
            return True
        shapes = Shapes(self._model)
        return all(shapes.runs("Unsqueeze", value) for value in results)

    def _collected(self, node: EditableNode, value: EditableValue) -> EditableValue:
        """Return a result of one round as the list of the results of all rounds."""
        if self._model.opset < 13:
            inputs, attributes = [value], {"axes": [0]}
        else:
            axes = self._model.add_constant(f"{node.name}_axes", np.array([0], np.int64))
            inputs, attributes = [value, axes], {}
        return self._model.add(f"{node.name}_list", "Unsqueeze", inputs, attributes).outputs[0]

    def _absorb(
        self, node: EditableNode, number: int, values: dict[EditableNode, EditableValue]
    ) -> tuple[list[EditableValue], list[EditableNode]]:
        """Move a nested graph out of a node; return its results and its nodes with graphs."""
        nested = node.subgraphs[number]
        outer = node.inputs
        given_values = dict(values)
        constants = []
        for inner in nested.nodes:
            if inner.is_variable and inner not in given_values:
                if OUTER in inner.attrs:
                    given_values[inner] = outer[int(inner.attrs[OUTER])]
                elif inner.name == ABSENT:
                    given_values[inner] = self._model.absent()
                else:
                    constants.append(inner)
        with_graphs = {inner.name for inner in nested.nodes if inner.subgraphs}
        before = len(self._graph.nodes)
        results = list(self._graph.absorb(node, number, given_values))
        moved = self._graph.nodes[before:]
        self._model.note_new(moved)
        for inner in moved:
            if inner in constants:
                array = self._constant(inner)
                if array is not None:
                    self._graph.args[inner.name] = array
        return results, [inner for inner in moved if inner.subgraphs and with_graphs]

    def _constant(self, node: EditableNode) -> np.ndarray[Any, Any] | None:
        if not node.is_variable or OUTER in node.attrs:
            return None
        return constant_array(self._document, node.attrs.get(ID, ""))


def integer_of(node: EditableNode) -> int:
    """Return the number of inputs that are the operator's own."""
    return int(node.attrs.get(FORMAL, len(node.inputs)))


def _number_of(node: EditableNode, attribute: str) -> int:
    found = re.fullmatch(r"subgraph\[(\d+)\]", node.attrs[attribute])
    assert found is not None, node.attrs[attribute]
    return int(found.group(1))


def _parameters(body: EditableGraph) -> list[EditableNode]:
    """Return the parameters of a nested graph in their order."""
    found = []
    for node in body.nodes:
        where, _, number = node.attrs.get(ID, "").rpartition(".")
        if node.is_variable and where.endswith(".input"):
            found.append((int(number), node))
    return [node for _, node in sorted(found, key=lambda item: item[0])]
