"""Layers that multiply by a weight matrix or look up its rows."""

from __future__ import annotations

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.table import table


@table.register("FullyConnected", "_sparse_FullyConnected", "_npx_fully_connected")
def fully_connected(op: Operation) -> Value:
    """Multiply by the transposed weight and add the bias.

    ``data`` (N, ...), ``weight`` (num_hidden, K), ``bias`` (num_hidden,). With ``flatten`` the
    axes after the first become one and the result is (N, num_hidden); without it only the last
    axis is replaced.
    """
    data, weight = op.operands(2, more=True)
    bias = None if op.bool("no_bias", False) else op.inputs[2]
    rank = op.rank_of(data)
    if op.bool("flatten", True):
        if rank != 2:
            data = op.emit("Flatten", data, axis=1)
        return op.emit("Gemm", data, weight, bias, transB=1)
    product = op.emit("MatMul", data, op.emit("Transpose", weight, perm=[1, 0]))
    return product if bias is None else op.emit("Add", product, bias)


@table.register("Embedding", "_sparse_Embedding", "_npx_embedding", "_contrib_SparseEmbedding")
def embedding(op: Operation) -> Value:
    """Look up rows: ``data`` (...), ``weight`` (input_dim, output_dim) to (..., output_dim).

    Indices of any numeric type are truncated to integers and clipped to the valid range.
    """
    data, weight = op.operands(2)
    last = op.constant(op.int("input_dim") - 1, "int64")
    index = op.emit("Clip", op.cast(data, "int64"), op.constant(0, "int64"), last)
    return op.emit("Gather", weight, index, axis=0)
