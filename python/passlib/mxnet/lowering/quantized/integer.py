"""Convolution and matrix product of 8-bit numbers, with int32 sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.mxnet.lowering.neural.layout import spatial
from passlib.mxnet.lowering.quantized.ranges import (
    HALF_STEPS,
    INT32_STEPS,
    WHOLE_STEPS,
    bits,
    largest,
    step,
    symmetric,
    unsigned,
)
from passlib.mxnet.lowering.table import table


@table.register("_contrib_quantized_conv")
def quantized_convolution(op: Operation) -> Sequence[Value]:
    """Convolve uint8 data with an int8 weight; outputs int32 sums and their range.

    Inputs: data, weight, bias unless ``no_bias``, then a minimum and a maximum for each. The int8
    bias is added to the sums as it is: MXNet 1.9.1 does not rescale it here.
    """
    biased = not op.bool("no_bias", False)
    inputs = op.operands(9 if biased else 6)
    data, weight = inputs[:2]
    window = spatial(op)
    if op.dtype_of(data) != np.uint8:
        op.unsupported("MXNet 1.9.1 computes it for uint8 data only")
    if window.rank != 2 or window.channels_last:
        op.unsupported("only two spatial axes with channels first are supported")
    moved, zero = unsigned(op, weight)
    sums = op.emit(
        "ConvInteger",
        data,
        moved,
        op.constant(0, np.uint8),
        op.constant(zero, np.uint8),
        kernel_shape=window.kernel,
        strides=window.stride,
        dilations=window.dilate,
        pads=window.pad * 2,
        group=op.int("num_group", 1),
    )
    if biased:
        bias = op.cast(inputs[2], np.int32)
        sums = op.emit("Add", sums, op.emit("Reshape", bias, vector(op, -1, 1, 1)))
    low = inputs[3 if biased else 2 :]
    # The range counts 127 steps for uint8 too.
    return sums, *_range(op, low, WHOLE_STEPS["int8"])


@table.register("_contrib_quantized_fully_connected")
def quantized_fully_connected(op: Operation) -> Sequence[Value]:
    """Multiply 8-bit data by the transposed int8 weight; outputs int32 sums and their range.

    Inputs as of `quantized_convolution`; the bias is converted to the step of the sums.
    """
    biased = not op.bool("no_bias", False)
    inputs = op.operands(9 if biased else 6)
    data, weight = inputs[:2]
    dtype = bits(op, data)
    if op.bool("flatten", True) and op.rank_of(data) != 2:
        data = op.emit("Reshape", data, vector(op, 0, -1))
    moved, zero = unsigned(op, data)
    factor, factor_zero = unsigned(op, weight)
    sums = op.emit(
        "MatMulInteger",
        moved,
        op.emit("Transpose", factor, perm=[1, 0]),
        op.constant(zero, np.uint8),
        op.constant(factor_zero, np.uint8),
    )
    bounds = inputs[3 if biased else 2 :]
    if biased:
        unit = op.emit("Mul", *_steps(op, bounds, HALF_STEPS[dtype]))
        bias_step = step(op, largest(op, *bounds[4:6]), WHOLE_STEPS["int8"])
        ratio = op.emit("Div", bias_step, unit)
        bias = op.emit("Mul", op.cast(inputs[2], np.float32), ratio)
        sums = op.emit("Add", sums, op.cast(bias, np.int32))
    return sums, *_range(op, bounds, WHOLE_STEPS[dtype])


def _steps(op: Operation, bounds: Sequence[Value], data_steps: float) -> list[Value]:
    """Return the steps of data and weight, whose ranges come first in ``bounds``."""
    return [
        step(op, largest(op, *bounds[:2]), data_steps),
        step(op, largest(op, *bounds[2:4]), WHOLE_STEPS["int8"]),
    ]


def _range(op: Operation, bounds: Sequence[Value], data_steps: float) -> tuple[Value, Value]:
    """Return the range of int32 sums: their step is the product of the operands' steps."""
    unit = op.emit("Mul", *_steps(op, bounds, data_steps))
    bound = op.emit("Mul", unit, op.constant_like(INT32_STEPS, unit))
    return symmetric(op, op.emit("Reshape", bound, vector(op, 1)))
