"""resolveIf: replaces If with a known condition, and Loop with a known trip count of 0 or 1."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from passlib._core import EditableGraph, EditableNode, EditableValue
from passlib.dialects.onnx.attributes import ABSENT, FORMAL, ID, OUTER
from passlib.dialects.onnx.nested import constant_array, parameter_rank
from passlib.dialects.onnx.reading import document_of
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.standard.facts.nodes import Model, given, integers, operator
from passlib.passes.standard.facts.shapes import Shapes

_SAME = frozenset(
    ("Identity", "Relu", "Sigmoid", "Tanh", "Cast", "Neg", "Abs", "Sqrt", "Exp", "Log", "Erf",
     "LeakyRelu", "Clip", "Softmax", "Dropout")
)  # fmt: skip

_RANGE = ("start", "end")

_WANTED = {"LSTM": 3, "GRU": 3, "RNN": 3, "Gemm": 2}
"""The number of axes that an operator needs of its first input."""

Constant = Callable[[EditableNode], "np.ndarray[Any, Any] | None"]


def fails_with_rank(
    value: EditableValue,
    rank: int,
    order: Sequence[EditableNode],
    shapes: Shapes,
    nested_constant: Constant,
) -> bool:
    """Whether a node that always runs fails if a value has this number of axes.

    Parameters
    ----------
    value : EditableValue
        Of the main graph.
    order : sequence of EditableNode
        The nodes of the main graph, each after its inputs.
    nested_constant : callable
        Returns the elements of a constant of a nested graph.
    """
    trial = _Trial(shapes, nested_constant)
    trial.ranks[value] = rank
    return any(trial.run(node) for node in order if node != value.node)


class _Trial:
    """Ranks, and numbers that follow from them, as they would be."""

    def __init__(self, shapes: Shapes, nested_constant: Constant) -> None:
        self.ranks: dict[EditableValue, int] = {}
        self._lengths: dict[EditableValue, int] = {}
        self._numbers: dict[EditableValue, int] = {}
        self._shapes = shapes
        self._nested_constant = nested_constant

    def run(self, node: EditableNode) -> bool:
        """Follow one node of the main graph; return whether it fails."""
        if node.is_variable or not any(self._concerns(value) for value in node.inputs):
            return False
        if self._fails(node):
            return True
        self._follow(node, {})
        return False

    def _concerns(self, value: EditableValue) -> bool:
        return value in self.ranks or value in self._numbers or value in self._lengths

    def _fails(self, node: EditableNode) -> bool:
        have = self.ranks.get(node.inputs[0])
        name = operator(node)
        wanted = _WANTED.get(name)
        if name in ("Conv", "ConvTranspose"):
            wanted = self._shapes.rank(node.inputs[1])
        return have is not None and wanted is not None and have != wanted

    def _follow(self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]) -> None:
        """Note what is known of the results of a node; ``outer`` leads out of nested graphs."""

        def seen(value: EditableValue) -> EditableValue:
            return outer.get(value.node, value)

        name, result = operator(node), node.outputs[0]
        if name == "If":
            self._take_branch(node, outer)
            return
        rank = self.ranks.get(seen(node.inputs[0])) if node.inputs else None
        numbers = [self._number(seen(value)) for value in node.inputs]
        if name in _SAME and rank is not None:
            self.ranks[result] = rank
        elif name in ("Squeeze", "Unsqueeze") and rank is not None:
            axes = self._axes(node, outer)
            if axes is not None:
                self.ranks[result] = rank + (len(axes) if name == "Unsqueeze" else -len(axes))
        elif name == "Shape" and rank is not None and node.attrs.keys().isdisjoint(_RANGE):
            self._lengths[result] = rank
        elif name == "Size" and seen(node.inputs[0]) in self._lengths:
            self._numbers[result] = self._lengths[seen(node.inputs[0])]
        elif name == "Equal" and None not in numbers:
            self._numbers[result] = int(numbers[0] == numbers[1])
        elif name == "Not" and None not in numbers:
            self._numbers[result] = int(not numbers[0])

    def _number(self, value: EditableValue) -> int | None:
        if value in self._numbers:
            return self._numbers[value]
        content = self._shapes.content(value)
        if content is None or content.size != 1 or not isinstance(content.flat[0], int):
            return None
        return content.flat[0]

    def _axes(
        self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]
    ) -> list[int] | None:
        stated = integers(node, "axes")
        if stated is not None:
            return stated
        value = given(node, 1)
        if value is None:
            return None
        array = None if value.node in outer else self._nested_constant(value.node)
        if array is not None:
            return [int(item) for item in array.reshape(-1)]
        return self._shapes.whole(outer.get(value.node, value))

    def _take_branch(self, node: EditableNode, outer: Mapping[EditableNode, EditableValue]) -> None:
        condition = self._number(outer.get(node.inputs[0].node, node.inputs[0]))
        if condition is None:
            return
        stated = node.attrs["then_branch" if condition else "else_branch"]
        branch = node.subgraphs[int(stated.partition("[")[2].rstrip("]"))]
        inside = {
            inner: outer.get(source.node, source)
            for inner in branch.nodes
            if inner.is_variable and OUTER in inner.attrs
            for source in (node.inputs[int(inner.attrs[OUTER])],)
        }
        for inner in branch.sorted():
            if not inner.is_variable:
                self._follow(inner, inside)
        for result, value in zip(node.outputs, branch.outputs, strict=False):
            rank = self.ranks.get(inside.get(value.node, value))
            if rank is not None:
                self.ranks[result] = rank


@graph_pass(
    name="resolveIf",
    dialects=["onnx"],
    exact=True,
    triggers=["If", "Loop"],
    joins=Joins(["clean", "simplify"], after="foldConstants"),
)
def resolve_if(graph: Graph) -> None:
    """Replace If with a known condition by its branch, and Loop with one iteration by its body."""
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
        results, moved = self._graph.absorb(node, number, given_values)
        self._model.note_new(moved)
        for inner in moved:
            if inner in constants:
                array = self._constant(inner)
                if array is not None:
                    self._graph.args[inner.name] = array
        return list(results), [inner for inner in moved if inner.subgraphs and with_graphs]

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
