"""Self-attention of MXNet's oneDNN backend, on real or on 8-bit numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.mxnet.lowering.neural.attention import selfatt_qk, selfatt_valatt
from passlib.mxnet.lowering.quantized.ranges import (
    HALF_STEPS,
    bits,
    calibrated,
    dequantized,
    in_range,
    largest,
    quantized,
    step,
)
from passlib.mxnet.lowering.table import table


@table.register("_sg_mkldnn_selfatt_qk")
def attention_scores(op: Operation) -> Sequence[Value]:
    """Compute `selfatt_qk`; if ``quantized``, the range of the 8-bit projections follows them."""
    return _computed(op, selfatt_qk, 1)


@table.register("_sg_mkldnn_selfatt_valatt")
def attention_of_values(op: Operation) -> Sequence[Value]:
    """Compute `selfatt_valatt`; if ``quantized``, the ranges of both 8-bit inputs follow them."""
    return _computed(op, selfatt_valatt, 2)


def _computed(op: Operation, function: Callable[[Operation], Value], count: int) -> Sequence[Value]:
    if not op.bool("quantized", False):
        return [function(op)]
    values, bounds = op.operands(3 * count)[:count], op.inputs[count:]
    for place, value in enumerate(values):
        steps = HALF_STEPS[bits(op, value)]
        size = step(op, largest(op, *bounds[2 * place : 2 * place + 2]), steps)
        values[place] = dequantized(op, value, size)
    op.inputs[:] = values
    result = function(op)
    if op.bool("enable_float_output", False):
        return [result]
    limits = calibrated(op)
    if limits is None:
        op.unsupported("sums without a calibrated range are not supported", "min_calib_range")
    size = op.constant(np.float32(max(map(abs, limits)) / HALF_STEPS["int8"]))
    return in_range(op, quantized(op, result, size, "int8"), limits)
