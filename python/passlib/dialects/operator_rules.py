"""The interface by which dialects query an operator of a loaded library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from passlib.lowering import Shape


class Rules(Protocol):
    """Arity, shapes and types of an operator that a library registered.

    Methods raise `OperatorError` where the library's own functions fail.
    """

    @property
    def name(self) -> str:
        """The registered name."""

    @property
    def is_subgraph(self) -> bool:
        """Whether inputs and outputs are those of the graph that a node carries."""

    @property
    def infers(self) -> bool:
        """Whether the operator itself infers arity, shapes and types."""

    def arity(self, attributes: Mapping[str, str], node_name: str = "") -> tuple[int, int]:
        """Return the numbers of inputs and outputs."""

    def mutated_inputs(self, attributes: Mapping[str, str]) -> tuple[int, ...]:
        """Return the positions of the inputs that the operator writes to."""

    def infer_shapes(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[Shape | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[Shape | None], list[Shape | None]]:
        """Infer the shapes of inputs and outputs."""

    def infer_types(
        self,
        attributes: Mapping[str, str],
        inputs: Sequence[np.dtype | None],
        num_outputs: int,
        node_name: str = "",
    ) -> tuple[list[np.dtype | None], list[np.dtype | None]]:
        """Infer the element types of inputs and outputs."""
