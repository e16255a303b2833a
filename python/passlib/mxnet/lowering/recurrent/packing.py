"""Sizes and layout of the vector into which MXNet packs all weights of its RNN operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from passlib.graph.attributes import Attributes

GATES: Final = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}
"""Number of gates by the attribute ``mode``."""


@dataclass(frozen=True)
class Packing:
    """Sizes of an RNN, which determine the layout of its weights.

    The matrices of every layer and direction (by input, by state, projection) come first, then
    the two biases of every layer and direction.
    """

    gates: int
    state: int
    layers: int
    directions: int
    inputs: int
    projection: int | None

    @classmethod
    def of(cls, at: Attributes, inputs: int) -> Packing:
        """Read the sizes from the attributes of a node.

        Parameters
        ----------
        at : Attributes
        inputs : int
            Size of the last axis of the data.
        """
        mode = at.string("mode", choices=tuple(GATES))
        for name in ("state_size", "num_layers"):
            if at.int(name) < 1:
                at.invalid("must be at least 1", name)
        return cls(
            gates=GATES[mode],
            state=at.int("state_size"),
            layers=at.int("num_layers"),
            directions=1 + at.bool("bidirectional", False),
            inputs=inputs,
            projection=at.optional_int("projection_size") if mode == "lstm" else None,
        )

    @property
    def rows(self) -> int:
        """Rows of the states: one for each direction of each layer."""
        return self.layers * self.directions

    @property
    def recurrent(self) -> int:
        """Size of what is fed back: the state, or its projection."""
        return self.projection or self.state

    def shapes(self) -> list[list[tuple[int, ...]]]:
        """Return the shapes of the matrices of each layer and direction, in order."""
        rows = self.gates * self.state
        result: list[list[tuple[int, ...]]] = []
        for layer in range(self.layers):
            width = self.recurrent * self.directions if layer else self.inputs
            matrices: list[tuple[int, ...]] = [(rows, width), (rows, self.recurrent)]
            if self.projection:
                matrices.append((self.projection, self.state))
            result += [matrices] * self.directions
        return result

    @property
    def size(self) -> int:
        """Number of all weights."""
        rows = self.gates * self.state
        fixed = rows * (self.recurrent + 2) + (self.projection or 0) * self.state
        later = (self.layers - 1) * rows * self.recurrent * self.directions
        return self.directions * (self.layers * fixed + rows * self.inputs + later)
