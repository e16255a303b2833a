"""The weights of an RNN, cut out of the vector that holds them all."""

from __future__ import annotations

from typing import NamedTuple

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.recurrent.packing import Packing


class DirectionWeights(NamedTuple):
    """Weights of one direction of one layer; G gates, H state size, R recurrent size, I inputs."""

    input: Value
    """(G * H, I)"""
    state: Value
    """(G * H, R)"""
    projection: Value | None
    """(R, H), if there is a projection."""
    input_bias: Value
    """(G * H,)"""
    state_bias: Value
    """(G * H,)"""


def unpack(op: Operation, packing: Packing, packed: Value) -> list[DirectionWeights]:
    """Cut the vector into the weights of each layer and direction.

    Raises
    ------
    UnsupportedError
        The size of the vector does not match the packing.
    """
    if op.shape_of(packed) != (packing.size,):
        op.unsupported(
            f"its weights have shape {op.shape_of(packed)}, its sizes require ({packing.size},)"
        )
    at = 0

    def cut(*shape: int) -> Value:
        nonlocal at
        count = shape[0] * (shape[1] if len(shape) == 2 else 1)
        bounds = (vector(op, at), vector(op, at + count))
        at += count
        piece = op.emit("Slice", packed, *bounds, vector(op, 0))
        return op.emit("Reshape", piece, vector(op, *shape))

    matrices = [[cut(*shape) for shape in group] for group in packing.shapes()]
    rows = packing.gates * packing.state
    return [
        DirectionWeights(
            group[0], group[1], group[2] if packing.projection else None, cut(rows), cut(rows)
        )
        for group in matrices
    ]
