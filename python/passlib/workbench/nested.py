"""Values of nested graphs in a run of a model: branches of If, iterations of Loop and Scan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib.dialects.onnx.attributes import OUTER
from passlib.errors import PasslibError, printable
from passlib.graph.node import Entry, Node
from passlib.model import Model, load
from passlib.workbench.inner import (
    NESTING,
    carried,
    inner_model,
    iterations,
    nested_graphs_of,
    parameters_of,
)
from passlib.workbench.parts import outputs_of
from passlib.workbench.two_files import message_of

Value = tuple[Node, int]

_MOST_ITERATIONS: Final = 32
"""Iterations of a body that are looked at."""


@dataclass(frozen=True)
class NestedGraph:
    """A nested graph as a model of its own.

    Attributes
    ----------
    node : Node
        The If, Loop or Scan of the outer model.
    operator : onnx.NodeProto
        The same one in the file.
    attribute : str
    model : Model
        Its inputs are the parameters of the graph and the values that it captures.
    body : onnx.GraphProto
    captured : dict of str to Entry
        The captured values in the outer graph.
    """

    node: Node
    operator: Any
    attribute: str
    model: Model
    body: Any
    captured: Mapping[str, Entry]

    @property
    def parameters(self) -> list[str]:
        """The names of the number of the iteration, the condition and what is carried."""
        return [value.name for value in self.body.input]

    def __str__(self) -> str:
        return f"{self.attribute} of {printable(self.node.op)} {printable(self.node.name)!r}"

    def first_inputs(self, values: Mapping[Value, Any]) -> dict[str, Any]:
        """Return the inputs of the first execution, whether or not there is one."""
        captured = {n: values[e.node, e.index] for n, e in self.captured.items()}
        inputs = _inputs(self.node, self.operator, values)
        return captured | parameters_of(self.operator, self.body, inputs)

    def executions(self, values: Mapping[Value, Any]) -> Iterator[dict[str, Any]]:
        """Yield the inputs of each execution in a run; none if a value is not known.

        ``values``: of the outer graph.
        """
        fed = {name: values.get((e.node, e.index)) for name, e in self.captured.items()}
        given = _inputs(self.node, self.operator, values)
        if any(value is None for value in fed.values()):
            return
        if self.node.op == "If":
            taken = given[0]
            if taken is not None and bool(np.all(taken)) == (self.attribute == "then_branch"):
                yield fed
            return
        is_loop = self.node.op == "Loop"
        first = 2 if is_loop else 0
        count = carried(self.operator, self.body)
        if any(value is None for value in given[first:]):
            return
        known = iterations(self.operator, self.body, given)
        goes_on = not is_loop or given[1] is None or bool(np.all(given[1]))
        for number in range(min(_MOST_ITERATIONS if known is None else known, _MOST_ITERATIONS)):
            if not goes_on:
                return
            inputs = fed | parameters_of(self.operator, self.body, given, number)
            yield inputs
            try:
                computed = outputs_of(self.model, inputs)
            except PasslibError:
                return
            if is_loop:
                goes_on = bool(np.all(np.asarray(computed.pop(0))))
            given[first : first + count] = computed[:count]


def nested_graphs(model: Model, values: Mapping[Value, Any]) -> list[NestedGraph]:
    """Return the nested graphs of the nodes of an ONNX model, as far as the types are known.

    ``values``: of the graph in some run, which have these types.
    """
    found: list[NestedGraph] = []
    nodes = [each for each in model.symbol.nodes() if each.op in NESTING and each.subgraphs]
    if model.dialect != "onnx" or not nodes:
        return found
    message = message_of(model, {})
    internals = model.symbol.get_internals()
    named = zip(internals.list_outputs(), internals.entries, strict=True)
    nesting = {name: entry.node for name, entry in named if entry.node in set(nodes)}
    for each in message.graph.node:
        node = nesting.get(next(filter(None, each.output), ""))
        graphs = {} if node is None else nested_graphs_of(each)
        if node is None or len(graphs) != len(node.subgraphs):
            continue
        captured = {
            inner.name: node.inputs[int(inner.attrs[OUTER])]
            for graph in node.subgraphs
            for inner in graph.nodes()
            if OUTER in inner.attrs
        }
        for name, graph in graphs.items():
            parameters = [value.name for value in graph.input]
            arrays = {n: values.get((e.node, e.index)) for n, e in captured.items()}
            arrays |= parameters_of(each, graph, _inputs(node, each, values))
            known = {n: np.asarray(array) for n, array in arrays.items() if array is not None}
            try:
                made = load(inner_model(message, graph, known).SerializeToString())
            except PasslibError:
                continue
            read = {n: captured[n] for n in made.inputs if n in captured and n not in parameters}
            found.append(NestedGraph(node, each, name, made, graph, read))
    return found


def _inputs(node: Node, operator: Any, values: Mapping[Value, Any]) -> list[Any]:
    """Return the inputs of a node, without what its nested graphs capture."""
    return [values.get((e.node, e.index)) for e in node.inputs[: len(operator.input)]]
