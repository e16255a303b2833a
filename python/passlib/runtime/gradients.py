"""Gradients of graphs of libraries' operators, by the operators' backward functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import find
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.graph.plain import PlainGraph
from passlib.runtime.custom_node import Done, library_operators
from passlib.runtime.sessions import as_dense

_Array: TypeAlias = "np.ndarray[Any, Any]"


class Gradients:
    """The arrays that an executor writes gradients to.

    Parameters
    ----------
    symbol : PlainGraph
    arrays : mapping of str to NDArray or None
        One for each argument, None for unwanted gradients.
    requests : mapping of str to {"write", "add", "null"}
        Whether to overwrite the array of an argument, to add to it, or to leave it;
        ``"null"`` for missing ones.
    """

    def __init__(
        self, symbol: PlainGraph, arrays: Mapping[str, NDArray | None], requests: Mapping[str, str]
    ) -> None:
        self._symbol = symbol
        self.arrays = dict(arrays)
        self.requests = dict(requests)
        self._targets = {
            name: array
            for name, array in arrays.items()
            if array is not None and requests.get(name, "null") != "null"
        }
        self._between, self._obstacle = _between(symbol, frozenset(self._targets))

    @property
    def can_be_computed(self) -> bool:
        """Whether all operators between the arguments and the outputs have a backward function."""
        return not self._obstacle

    def backward(self, record: Sequence[Done], outputs: Sequence[Any], out_grads: Any) -> None:
        """Compute the gradients and store them. If that fails, no array has changed.

        Parameters
        ----------
        record : sequence of Done
            The record of the last run.
        outputs : sequence of array
            Its outputs.
        out_grads : array, sequence of arrays, or mapping of str to array
            The gradient of each output, of its shape.

        Raises
        ------
        UnsupportedError
            An operator on the way from an argument to the outputs has no gradient: a built-in
            one, or one whose library gives no backward function.
        ValueError
            The gradient of an output is missing, or has another shape than the output.
        TypeError
            A gradient is no array.
        GraphError
            An operator gave a gradient of another shape than its input has.
        OperatorError
            A backward function failed.
        """
        if self._obstacle:
            raise UnsupportedError(f"backward: {self._obstacle}")
        given = self._in_order(out_grads, outputs)
        if not self._targets:
            return
        found = self._compute(record, given)
        for name, target in self._targets.items():
            gradient = found.get(name)
            if self.requests[name] == "write":
                np.copyto(target, 0 if gradient is None else gradient, casting="unsafe")
            elif gradient is not None:
                np.copyto(target, target + gradient, casting="unsafe")

    def _in_order(self, out_grads: Any, outputs: Sequence[Any]) -> list[_Array]:
        names = self._symbol.list_outputs()
        if isinstance(out_grads, Mapping):
            out_grads = [out_grads.get(name) for name in names]
        elif isinstance(out_grads, (np.ndarray, BaseSparseNDArray)):
            out_grads = [out_grads]
        given = list(out_grads or ())
        if len(given) != len(names) or any(gradient is None for gradient in given):
            raise ValueError(
                f"backward needs the gradient of each output ({', '.join(names)}): no operator of "
                "a library is a loss that would start with one of its own"
            )
        for name, gradient, output in zip(names, given, outputs, strict=True):
            if not isinstance(gradient, (np.ndarray, BaseSparseNDArray)):
                raise TypeError(
                    f"the gradient of output {name!r} is of type {type(gradient).__name__}, not an "
                    "array; make one with passlib.nd.array"
                )
            if gradient.shape != output.shape:
                raise ValueError(
                    f"the gradient of output {name!r} has shape {gradient.shape}, the output "
                    f"{output.shape}"
                )
        return [
            as_dense(gradient).astype(output.dtype)
            for gradient, output in zip(given, outputs, strict=True)
        ]

    def _compute(self, record: Sequence[Done], out_grads: Sequence[_Array]) -> dict[str, _Array]:
        sums: dict[tuple[Node, int], _Array] = {}

        def add(node: Node, index: int, gradient: _Array) -> None:
            if node in self._between:
                known = sums.get((node, index))
                sums[node, index] = gradient if known is None else known + gradient

        for entry, gradient in zip(self._symbol.entries, out_grads, strict=True):
            add(entry.node, entry.index, gradient)
        for done in reversed(record):
            node = done.custom.node
            if node not in self._between:
                continue
            given = []
            for index, output in enumerate(done.outputs):
                total = sums.pop((node, index), None)
                # An unused output has a zero gradient.
                given.append(np.zeros(output.shape, output.dtype) if total is None else total)
            gradients = [as_dense(array) for array in done.backward(given)]
            for entry, gradient, value in zip(node.inputs, gradients, done.inputs, strict=True):
                if gradient.shape != value.shape:
                    raise GraphError(
                        f"{blame(node)}: the gradient of an input has shape {gradient.shape}, "
                        f"the input {value.shape}"
                    )
                add(entry.node, entry.index, gradient)
        return {node.name: gradient for (node, _), gradient in sums.items()}


def _between(symbol: PlainGraph, wanted: frozenset[str]) -> tuple[frozenset[Node], str]:
    """Find the wanted variables and all nodes between them and the outputs.

    If one of them has no gradient, the second result describes it.
    """
    nodes = symbol.nodes()
    used = {entry.node for entry in symbol.entries}
    for node in reversed(nodes):
        if node in used:
            used.update(entry.node for entry in node.inputs)
    operators = library_operators(symbol, find(symbol.dialect))
    between: set[Node] = set()
    for node in nodes:
        if node.is_variable and node.name in wanted:
            between.add(node)
        elif node in used and any(entry.node in between for entry in node.inputs):
            operator = operators.get(node.op)
            if operator is None:
                return frozenset(), (
                    "gradients are not computed for built-in operators, and "
                    f"{blame(node)} stands between an argument and the outputs; bind args_grad "
                    "only for arguments from which libraries' operators lead to the outputs"
                )
            if not operator.has_backward:
                return frozenset(), (
                    f"{blame(node)} stands between an argument and the outputs, and its "
                    f"library ({operator.library.path}) gives it no backward function"
                )
            between.add(node)
    return frozenset(between), ""
