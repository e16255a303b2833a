"""The matrix products of multi-head attention over interleaved projections.

Source: MXNet 1.9 ``contrib/transformer``. Projections are interleaved by head along the last
axis: queries, keys and values of each head (self-attention), or keys and values
(encoder-decoder).
"""

from __future__ import annotations

from passlib.lowering import Operation, Value
from passlib.lowering.extents import extent, reshaped_to, scaled, vector
from passlib.mxnet.lowering.table import table


@table.register("_contrib_interleaved_matmul_selfatt_qk")
def selfatt_qk(op: Operation) -> Value:
    """Compute scores of self-attention: (L, B, H * 3 * D) to (B * H, L, L), times 1 / sqrt(D)."""
    (projections,) = op.operands(1)
    queries, keys = (_heads(op, projections, 3, part) for part in (0, 1))
    return _scores(op, queries, keys)


@table.register("_contrib_interleaved_matmul_selfatt_valatt")
def selfatt_valatt(op: Operation) -> Value:
    """Weight values by attention: (L, B, H * 3 * D) and (B * H, L, L) to (L, B, H * D)."""
    projections, attention = op.operands(2)
    return _weighted(op, attention, _heads(op, projections, 3, 2))


@table.register("_contrib_interleaved_matmul_encdec_qk")
def encdec_qk(op: Operation) -> Value:
    """Score queries (Q, B, H * D) by keys and values (K, B, H * 2 * D): (B * H, Q, K)."""
    queries, projections = op.operands(2)
    return _scores(op, _heads(op, queries, 1, 0), _heads(op, projections, 2, 0))


@table.register("_contrib_interleaved_matmul_encdec_valatt")
def encdec_valatt(op: Operation) -> Value:
    """Weight values by attention: (K, B, H * 2 * D) and (B * H, Q, K) to (Q, B, H * D)."""
    projections, attention = op.operands(2)
    return _weighted(op, attention, _heads(op, projections, 2, 1))


@table.register("_contrib_div_sqrt_dim")
def div_sqrt_dim(op: Operation) -> Value:
    """Divide by the square root of the size of the last axis, shape unchanged."""
    (data,) = op.operands(1)
    op.require_rank(data, least=1)
    last = op.rank_of(data) - 1
    size = None if data.shape is None else data.shape[last]
    if size is not None:
        return op.emit("Div", data, op.constant_like(size**0.5, data))
    length = op.cast(extent(op, data, last), op.dtype_of(data))
    return op.emit("Div", data, op.emit("Sqrt", length))


def _heads_of(op: Operation) -> int:
    heads = op.int("heads")
    if heads < 1:
        op.invalid("must be at least 1", "heads")
    return heads


def _heads(op: Operation, projections: Value, parts: int, part: int) -> Value:
    """Extract one part of the projections, as (B * H, L, D)."""
    heads = _heads_of(op)
    op.require_rank(projections, 3)
    width = op.size_of(projections, 2)
    if width % (heads * parts):
        op.invalid(f"does not divide the size {width} of the last axis", "heads")
    depth = width // (heads * parts)
    rows = scaled(op, extent(op, projections, 1), heads)
    sizes = [extent(op, projections, 0), rows, vector(op, parts, depth)]
    split = reshaped_to(op, projections, sizes)
    chosen = op.emit("Gather", split, op.constant(part, "int64"), axis=2)
    return op.emit("Transpose", chosen, perm=[1, 0, 2])


def _scores(op: Operation, queries: Value, keys: Value) -> Value:
    depth = op.size_of(queries, 2)
    if not depth:
        op.unsupported("the queries have no elements")
    scaled = op.emit("Mul", queries, op.constant_like(depth**-0.5, queries))
    return op.emit("MatMul", scaled, op.emit("Transpose", keys, perm=[0, 2, 1]))


def _weighted(op: Operation, attention: Value, values: Value) -> Value:
    heads = _heads_of(op)
    weighted = op.emit("MatMul", attention, values)
    depth = op.size_of(weighted, 2)
    by_time = op.emit("Transpose", weighted, perm=[1, 0, 2])
    batch = scaled(op, extent(op, weighted, 0), 1, heads)
    return reshaped_to(op, by_time, [extent(op, weighted, 1), batch, vector(op, heads * depth)])
