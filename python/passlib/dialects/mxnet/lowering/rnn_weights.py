"""How MXNet packs all weights of its RNN operator into one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from passlib.lowering import Operation, Value

__all__ = ["DirectionWeights", "Packing"]


class DirectionWeights(NamedTuple):
    """Weights of one direction of one layer; G gates, H state size, R recurrent size, I inputs."""

    input: Value
    """(G * H, I)"""
    state: Value
    """(G * H, R)"""
    projection: Value | None
    """(R, H), where there is a projection."""
    input_bias: Value
    """(G * H,)"""
    state_bias: Value
    """(G * H,)"""


@dataclass(frozen=True)
class Packing:
    """Sizes of an RNN, and from them the layout of its weights.

    First the matrices of every layer and direction (by input, by state, projection), then the
    two biases of every layer and direction.
    """

    gates: int
    state: int
    layers: int
    directions: int
    inputs: int
    projection: int | None

    @property
    def recurrent(self) -> int:
        """Size of what is fed back: the state, or its projection."""
        return self.projection or self.state

    def shapes(self) -> list[list[tuple[int, ...]]]:
        """Shapes of the matrices of each layer and direction, in order."""
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

    def unpack(self, op: Operation, packed: Value) -> list[DirectionWeights]:
        """Cut the vector into the weights of each layer and direction.

        Raises
        ------
        UnsupportedError
            The vector does not have the size that these sizes ask for.
        """
        if op.shape_of(packed) != (self.size,):
            op.unsupported(
                f"its weights have shape {op.shape_of(packed)}, its sizes ask for ({self.size},)"
            )
        at = 0

        def cut(*shape: int) -> Value:
            nonlocal at
            count = shape[0] * (shape[1] if len(shape) == 2 else 1)
            bounds = (op.constant([at], "int64"), op.constant([at + count], "int64"))
            at += count
            piece = op.emit("Slice", packed, *bounds, op.constant([0], "int64"))
            return op.emit("Reshape", piece, op.constant(shape, "int64"))

        matrices = [[cut(*shape) for shape in group] for group in self.shapes()]
        rows = self.gates * self.state
        return [
            DirectionWeights(
                group[0], group[1], group[2] if self.projection else None, cut(rows), cut(rows)
            )
            for group in matrices
        ]
