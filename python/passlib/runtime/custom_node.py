"""Execution of nodes whose operators belong to a library."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import Dialect
from passlib.dialects.inference import infer
from passlib.dialects.operator_types import handed_attributes, infer_node, written_inputs
from passlib.errors import GraphError
from passlib.files.fork_lock import ForkLock
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.library.operator import ArrayType, Operator, OperatorState, type_of
from passlib.library.registry import find_operator
from passlib.lowering import Graph, TypeSpec, describe
from passlib.lowering.types import Value
from passlib.runtime.sessions import as_dense

_KEPT = 8
"""States kept for one node: as many as a graph has sessions."""


class _Prepared(NamedTuple):
    """Everything that depends on the types of a node's inputs alone."""

    outputs: list[ArrayType]
    state: OperatorState | None


class Done(NamedTuple):
    """One run of a node, with everything that its gradient needs."""

    custom: CustomNode
    inputs: list[Any]
    outputs: list[Any]
    state: OperatorState | None

    def backward(self, out_grads: Sequence[Any]) -> list[Any]:
        """Compute the gradients of the inputs from those of the outputs.

        Raises `OperatorError` if the operator failed.
        """
        return self.custom.backward(self, out_grads)


class CustomNode:
    """A node with its operator."""

    def __init__(self, node: Node, operator: Operator) -> None:
        self.node = node
        self.operator = operator
        self._attributes = handed_attributes(node)
        self.mutated = written_inputs(node, operator, self._attributes)
        self._prepared: OrderedDict[tuple[ArrayType, ...], _Prepared] = OrderedDict()
        self._lock = ForkLock()

    def forward(self, inputs: Sequence[Any]) -> Done:
        """Run the operator.

        ``inputs``: those that the operator mutates are written to. Raises `GraphError` if the
        inputs do not fit the operator; `OperatorError` if the operator failed.
        """
        given = [self._stored(array) for array in inputs]
        # A state is for one thread at a time.
        with self._lock:
            outputs, state = self._prepare(given)
            if state is not None:
                made = state.forward(given, outputs, mutated=self.mutated)
                return Done(self, given, made, state)
        made = self.operator.forward(
            self.node.name, self._attributes, given, outputs, mutated=self.mutated
        )
        return Done(self, given, made, None)

    def backward(self, done: Done, out_grads: Sequence[Any]) -> list[Any]:
        """Compute gradients: see `Done.backward`."""
        if done.state is not None:
            with self._lock:
                return done.state.backward(out_grads, done.inputs, done.outputs)
        return self.operator.backward(
            self.node.name, self._attributes, out_grads, done.inputs, done.outputs
        )

    def _stored(self, array: Any) -> Any:
        """Keep sparse arrays for operators that infer storage types; expand them for others."""
        if isinstance(array, BaseSparseNDArray):
            return array if self.operator.infers else as_dense(array)
        return np.asarray(array)

    def _prepare(self, inputs: Sequence[Any]) -> _Prepared:
        signature = tuple(type_of(array) for array in inputs)
        known = self._prepared.get(signature)
        if known is None:
            known = self._prepared[signature] = self._make(signature)
            if len(self._prepared) > _KEPT:
                self._prepared.popitem(last=False)
        self._prepared.move_to_end(signature)
        return known

    def _make(self, inputs: Sequence[ArrayType]) -> _Prepared:
        specs = [TypeSpec(array.dtype, array.shape) for array in inputs]
        _, outputs = infer_node(
            self.node, self.operator, self._attributes, specs, lambda *given: infer(*given).outputs
        )
        stypes = ["default"] * len(outputs)
        if self.operator.infers:
            given = [array.stype for array in inputs]
            _, stypes = self.operator.infer_storage(
                self._attributes, given, len(outputs), self.node.name
            )
        wanted = [
            self._complete(index, spec, stype)
            for index, (spec, stype) in enumerate(zip(outputs, stypes, strict=True))
        ]
        state = None
        if self.operator.is_stateful:
            state = self.operator.create_state(
                self.node.name,
                self._attributes,
                [array.shape for array in inputs],
                [array.dtype for array in inputs],
            )
        return _Prepared(wanted, state)

    def _complete(self, index: int, spec: TypeSpec, stype: str) -> ArrayType:
        sizes = tuple(size for size in spec.shape or () if size is not None)
        if spec.dtype is None or spec.shape is None or len(sizes) < len(spec.shape):
            raise GraphError(
                f"{blame(self.node)}: the operator leaves the type of output {index} open "
                f"({describe(Value('', *spec))}), though all inputs are known"
            )
        return ArrayType(spec.dtype, sizes, stype)


def library_operators(graph: Graph, dialect: Dialect) -> dict[str, Operator]:
    """Return those operators of a graph that loaded libraries own, by name."""
    if not dialect.hosts_operators:
        return {}
    names = {node.op for node in graph.nodes() if not node.is_variable}
    found = {name: find_operator(name) for name in names}
    return {name: operator for name, operator in found.items() if operator is not None}
