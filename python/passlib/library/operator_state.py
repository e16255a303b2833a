"""States of stateful operators."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import passlib._core as _core
from passlib.library.arrays import ArrayType, Lent, type_of
from passlib.library.settings import settings

Finish: TypeAlias = Callable[[Lent, Sequence[ArrayType], Sequence[Any], str], list[Any]]
"""Makes arrays of the results of a computation; the last argument is the node's name."""


class OperatorState:
    """The state of one node with a stateful operator. Destroyed with this object.

    Attributes
    ----------
    operator : str
        Name of the operator.
    node_name : str
    """

    def __init__(
        self,
        operator: str,
        node_name: str,
        mutated: Sequence[int],
        core: _core.OperatorState,
        finish: Finish,
    ) -> None:
        self.operator = operator
        self.node_name = node_name
        self._mutated = tuple(mutated)
        self._core = core
        self._finish = finish

    def forward(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[ArrayType],
        *,
        mutated: Sequence[int] | None = None,
    ) -> list[Any]:
        """Compute the outputs; see `Operator.forward`.

        Parameters
        ----------
        inputs : sequence of array
        outputs : sequence of ArrayType
        mutated : sequence of int, optional
            Inputs that may be written to; by default those that the operator declares. Subgraph
            operators declare none.

        Returns
        -------
        list of NDArray or BaseSparseNDArray
        """
        lent = Lent(inputs, self._mutated if mutated is None else mutated)
        return self._compute(lent, outputs, is_forward=True)

    def backward(
        self, out_grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> list[Any]:
        """Compute the gradients of the inputs; see `Operator.backward`.

        Parameters
        ----------
        out_grads, inputs, outputs : sequence of array

        Returns
        -------
        list of NDArray
        """
        types = [type_of(array).dense() for array in inputs]
        return self._compute(Lent([*out_grads, *inputs, *outputs], ()), types, is_forward=False)

    def _compute(self, lent: Lent, types: Sequence[ArrayType], *, is_forward: bool) -> list[Any]:
        results = self._core.compute(
            settings(self.node_name, is_forward=is_forward),
            lent.columns,
            [output.column() for output in types],
            sys.stdout.write,
        )
        return self._finish(lent, types, results, self.node_name)
