"""The one walk over a graph that applies lowering functions, node by node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from passlib.errors import GraphError, InternalError, PasslibError, UnsupportedError
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node
from passlib.lowering.builder import GraphBuilder
from passlib.lowering.operation import Operation
from passlib.lowering.table import Lowerings
from passlib.lowering.types import Misfit, TypeSpec, Value, describe

Overriding = Mapping[Node, Mapping[str, str]]
"""Attribute values that replace a node's own."""


class Complete(Protocol):
    """Fills in what an operator determines about the types and shapes of a node's inputs."""

    def __call__(self, node: Node, inputs: Sequence[Value], outputs: Sequence[Value], /) -> None:
        """Complete the values in place; ``outputs`` is empty while they are unknown.

        Raises `GraphError` if known types or shapes contradict the operator.
        """


class Graph(Protocol):
    """The part of a symbol that lowering uses."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The outputs of the graph."""

    def nodes(self) -> list[Node]:
        """Return every node, each after its inputs."""


class Walk:
    """Lowers node after node into one ONNX graph.

    Parameters
    ----------
    types_only : bool
        Find types and shapes only: an operator that cannot be lowered has outputs of unknown type
        instead of raising an error, and every variable counts as an input.
    complete : Complete, optional
        Called with each node and its inputs before the node is lowered, and again with its outputs
        if ``types_only`` leaves some of them unknown.
    spared : collection of Node
        What no result needs, such as the source of a label in inference: those that cannot be
        lowered have outputs of unknown type.
    builder : GraphBuilder, optional
        Takes the nodes of a graph that is nested in another; by default a new one.

    Attributes
    ----------
    inputs : list of Value
        Variables that are fed.
    weights : dict of str to numpy.ndarray
        By ONNX name.
    source_of : dict of str to Node
        By name of the ONNX node.
    updates : dict of str to Value
        The final content of the variables that nodes write to, by the variable's name.
    """

    def __init__(
        self,
        graph: Graph,
        table: Lowerings,
        *,
        train: bool = False,
        types_only: bool = False,
        complete: Complete | None = None,
        overriding: Overriding | None = None,
        spared: Collection[Node] = (),
        builder: GraphBuilder | None = None,
    ) -> None:
        self._spared = spared
        self._nodes = graph.nodes()
        self._table = table
        self._train = train
        self._types_only = types_only
        self._complete = complete
        self._overriding = overriding or {}
        self._at: Node | None = None
        self.builder = builder or GraphBuilder(self._blame, types_only=types_only)
        self.inputs: list[Value] = []
        self.weights: dict[str, np.ndarray] = {}
        self.value_of: dict[tuple[Node, int], Value] = {}
        self.source_of: dict[str, Node] = {}
        self.updates: dict[str, Value] = {}

    def variables(self, inputs: Mapping[str, TypeSpec], params: Mapping[str, np.ndarray]) -> None:
        """Create the values of all variables.

        Raises `GraphError` if two variables share a name, or an input is not a variable.
        """
        names: set[str] = set()
        for node in self._nodes:
            if not node.is_variable:
                continue
            if node.name in names:
                raise GraphError(f"two variables are named {node.name!r}")
            names.add(node.name)
            self.value_of[node, 0] = self._variable(node.name, inputs, params)
            self.builder.variables[node.name] = self.value_of[node, 0]
        unknown = sorted(set(inputs) - names)
        if unknown:
            raise GraphError(
                f"the graph has no variable {', '.join(map(repr, unknown))}; "
                f"it has {', '.join(sorted(names)) or 'none'}"
            )

    def run(self) -> None:
        """Lower every operator, in post-order.

        Raises `GraphError` if the inputs of a node do not fit together; `InternalError` if a
        lowering function failed; `UnsupportedError` if a node has no faithful translation, unless
        only types are wanted.
        """
        for node in self._nodes:
            if node.is_variable:
                continue
            try:
                self._node(node)
            except (GraphError, UnsupportedError) as error:
                if node not in self._spared:
                    raise
                for index, value in enumerate(self._unknowns(node, str(error))):
                    self.value_of[node, index] = value

    def input_of(self, node: Node, entry: Entry) -> Value:
        """Return the value that ``node`` uses.

        Raises `UnsupportedError` if nothing computes it, unless only types are wanted.
        """
        value = self.value_of.get((entry.node, entry.index))
        if self.updates and entry.node.is_variable:
            value = self.updates.get(entry.node.name, value)
        if value is None:
            missing = f"output {entry.index} of {blame(entry.node)} is not computed"
            if not self._types_only:
                raise UnsupportedError(f"{blame(node)}: {missing}")
            value = self._unknown(entry.node, missing)
            self.value_of[entry.node, entry.index] = value
        return value

    def _blame(self) -> str:
        return "the graph" if self._at is None else blame(self._at)

    def _variable(
        self, name: str, inputs: Mapping[str, TypeSpec], params: Mapping[str, np.ndarray]
    ) -> Value:
        onnx_name = self.builder.unique(name)
        if name in inputs or self._types_only:
            spec = inputs.get(name, TypeSpec(None, None))
            value = Value(onnx_name, *spec, scope=self.builder.scope)
            self.inputs.append(value)
            return value
        if name in params:
            array = np.ascontiguousarray(params[name]).reshape(np.shape(params[name]))
            if not array.dtype.isnative:
                array = array.astype(array.dtype.newbyteorder("="))
            self.weights[onnx_name] = array
            return Value(onnx_name, array.dtype, array.shape, scope=self.builder.scope)
        missing = f"variable {name!r} is neither among the inputs nor among the parameters"
        return Value(onnx_name, unavailable=missing, absent=True, scope=self.builder.scope)

    def _node(self, node: Node) -> None:
        self._at = node
        inputs = [self.input_of(node, entry) for entry in node.inputs]
        if self._complete is not None:
            self._complete(node, inputs, ())
        start = len(self.builder.nodes)
        results = self._lower(node, inputs)
        if self._types_only and self._complete and not all(value.known for value in results):
            self._complete(node, inputs, results)
        for onnx_node in self.builder.nodes[start:]:
            self.source_of[onnx_node.name] = node
        computed = sum(not value.unavailable for value in results)
        for index, value in enumerate(results):
            suffix = "_output" if computed == 1 else f"_output{index}"
            self.builder.rename(value, node.name + suffix, start)
            self.value_of[node, index] = value
        for entry, value in zip(node.inputs, inputs, strict=True):
            written = self.builder.updates.pop(value.name, None)
            if written is None:
                continue
            if entry.node.is_variable:
                self.updates[entry.node.name] = written
            else:
                self.value_of[entry.node, entry.index] = written
        self._at = None

    def _lower(self, node: Node, inputs: list[Value]) -> list[Value]:
        try:
            results = self._apply(node, inputs)
        except UnsupportedError as error:
            if not self._types_only:
                raise
            return self._unknowns(node, str(error))
        except Misfit as error:
            text = f"{blame(node)}: cannot be applied to {_spelt(inputs)}: {error}"
            if not self._types_only or all(value.known for value in inputs):
                raise GraphError(text) from None
            return self._unknowns(node, text)
        except MemoryError as error:
            raise UnsupportedError(
                f"{blame(node)}: not enough memory to lower it for {_spelt(inputs)}"
            ) from error
        except PasslibError:
            raise
        except Exception as error:
            raise InternalError(
                f"{blame(node)}: internal error while it was lowered for {_spelt(inputs)} "
                f"({error!r}); please report it with the traceback"
            ) from error
        return [results] if isinstance(results, Value) else list(results)

    def _apply(self, node: Node, inputs: list[Value]) -> Value | Sequence[Value]:
        function = self._table.find(node.op)
        if function is None:
            raise UnsupportedError(f"{blame(node)}: {self._table.why_missing(node.op)}")
        operation = Operation(
            node,
            inputs,
            self.builder,
            train=self._train,
            overriding=self._overriding.get(node),
            nested=partial(self._within, node),
        )
        scope = self.builder.scope
        outer, scope.operation = scope.operation, operation
        try:
            return function(operation)
        finally:
            scope.operation = outer

    def _within(self, node: Node, position: int, values: Sequence[Value]) -> list[Value]:
        """Lower a graph nested in a node, in the same ONNX model."""
        graph = node.subgraphs[position]
        inner = Walk(
            graph,
            self._table,
            train=self._train,
            types_only=self._types_only,
            complete=self._complete,
            overriding=self._overriding,
            builder=self.builder,
        )
        variables = [each for each in graph.nodes() if each.is_variable]
        if len(variables) != len(values):
            raise Misfit(f"its graph {position} has {len(variables)} inputs, not {len(values)}")
        inner.value_of.update({(v, 0): w for v, w in zip(variables, values, strict=True)})
        inner.run()
        if inner.updates:
            names = ", ".join(map(repr, inner.updates))
            raise UnsupportedError(
                f"{blame(node)}: its graph {position} writes to {names}, which an ONNX graph "
                f"inside a loop or a branch cannot"
            )
        self.source_of.update(inner.source_of)
        return [inner.input_of(node, entry) for entry in graph.entries]

    def _unknowns(self, node: Node, why: str) -> list[Value]:
        return [self._unknown(node, why) for _ in range(max(node.num_outputs, 1))]

    def _unknown(self, node: Node, why: str) -> Value:
        name = self.builder.unique(f"{node.name}_unknown")
        return Value(name, unavailable=why, scope=self.builder.scope)


def _spelt(inputs: Sequence[Value]) -> str:
    return ", ".join(describe(value) for value in inputs) or "no inputs"
