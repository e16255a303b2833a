"""Fused layers of MXNet's oneDNN backend: the nested graph states what they compute.

Quantized ones become that graph between DequantizeLinear and QuantizeLinear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.graph.attributes import Attributes
from passlib.graph.node import Node
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.misfit import Misfit
from passlib.mxnet.lowering.quantized.ranges import (
    HALF_STEPS,
    INT32_STEPS,
    WHOLE_STEPS,
    bits,
    calibrated,
    dequantized,
    in_range,
    largest,
    quantized,
    step,
    symmetric,
)
from passlib.mxnet.lowering.table import table


@table.register("_sg_mkldnn_conv")
def fused_convolution(op: Operation) -> Sequence[Value]:
    """Compute a convolution with batch normalisation, activations and a sum.

    The inputs are data, weight, bias, the four parameters of the normalisation, the array to
    add, as far as the graph has them; if ``quantized``, the ranges of data and of the added array
    follow. The float32 weight is quantized here, each filter in a range of its own.
    """
    order = _order(op, "Convolution")
    if not op.bool("quantized", False):
        return op.subgraph(0, [op.inputs[place] for place in order])
    summed = op.bool("with_sum", False)
    count = len(order)
    inputs = op.operands(count + (4 if summed else 2))
    values, bounds = inputs[:count], inputs[count:]
    # oneDNN halves the steps for signed data on processors without VNNI, so that sums fit.
    factor = 2.0 if op.dtype_of(values[0]) == np.int8 else 1.0
    units = None
    if calibrated(op) is None and not op.bool("enable_float_output", False):
        scale = _norm_scale(op, values)
        units = _units(op, values, bounds[:2], scale)
        values[1] = _rounded_whole(op, values[1], units[2], scale, factor)
    else:
        values[1] = _rounded_filters(op, values[1], factor)
    values[0] = _real(op, values[0], bounds[:2])
    if summed:
        values[-1] = _real(op, values[-1], bounds[2:])
    (result,) = op.subgraph(0, [values[place] for place in order])
    return _finished(op, result, units)


@table.register("_sg_mkldnn_fully_connected")
def fused_fully_connected(op: Operation) -> Sequence[Value]:
    """Compute a fully connected layer with an activation.

    If ``quantized``, the ranges of data, weight and bias follow the inputs, and weight and bias
    are int8; with ``channel_wise_quantize`` they are float32, and quantized here.
    """
    order = _order(op, "FullyConnected")
    if not op.bool("quantized", False):
        return op.subgraph(0, [op.inputs[place] for place in order])
    count = len(order)
    values, bounds = op.inputs[:count], op.inputs[count:]
    units = None
    for place in range(count):
        dtype = op.dtype_of(values[place]).name
        if dtype not in HALF_STEPS:
            values[place] = _rounded_filters(op, values[place]) if place == 1 else values[place]
            continue
        size = step(op, largest(op, *bounds[2 * place : 2 * place + 2]), HALF_STEPS[dtype])
        values[place] = dequantized(op, values[place], size)
    (result,) = op.subgraph(0, [values[place] for place in order])
    if calibrated(op) is None and not op.bool("enable_float_output", False):
        dtype = bits(op, op.inputs[0])
        reach = [largest(op, *bounds[:2]), largest(op, *bounds[2:4])]
        units = [
            op.emit("Mul", step(op, reach[0], steps[dtype]), step(op, reach[1], steps["int8"]))
            for steps in (HALF_STEPS, WHOLE_STEPS)
        ]
    return _finished(op, result, units)


def _order(op: Operation, layer: str) -> list[int]:
    """Return which input of the node each variable of the nested graph is.

    The node takes the layer's own inputs first, whatever their order in the graph.
    """
    nodes: list[Node] = op.node.subgraphs[0].nodes() if op.node.subgraphs else []
    variables = [node for node in nodes if node.is_variable]
    ranked = dict.fromkeys(variables, 3)
    for node in nodes:
        rank = {layer: 1, "BatchNorm": 2}.get(node.op, 3)
        for entry in node.inputs:
            if entry.node in ranked:
                ranked[entry.node] = min(rank, ranked[entry.node])
    taken = sorted(variables, key=lambda node: ranked[node])
    if len(op.inputs) < len(taken):
        raise Misfit(f"its graph has {len(taken)} inputs, the node {len(op.inputs)}")
    return [taken.index(node) for node in variables]


def _real(op: Operation, value: Value, bounds: Sequence[Value]) -> Value:
    steps = HALF_STEPS.get(op.dtype_of(value).name)
    if steps is None:
        return value
    return dequantized(op, value, step(op, largest(op, *bounds), steps))


def _norm_scale(op: Operation, values: Sequence[Value]) -> Value | None:
    """Return the factors that the batch normalisation puts on the filters, if there is one."""
    norm = next((node for node in op.node.subgraphs[0].nodes() if node.op == "BatchNorm"), None)
    if norm is None:
        return None
    attributes = Attributes(norm)
    gamma, _, _, variance = values[-5:-1] if op.bool("with_sum", False) else values[-4:]
    shifted = op.emit("Add", variance, op.constant_like(attributes.float("eps", 1e-3), variance))
    factor = op.emit("Reciprocal", op.emit("Sqrt", shifted))
    return factor if attributes.bool("fix_gamma", True) else op.emit("Mul", factor, gamma)


def _units(
    op: Operation, values: Sequence[Value], bounds: Sequence[Value], scale: Value | None
) -> list[Value]:
    """Return the step of sums, the step that their range is stated in, the step of the weight."""
    weight = values[1] if scale is None else _along_filters(op, "Mul", values[1], scale)
    reach = op.emit("ReduceMax", op.emit("Abs", weight), keepdims=0)
    dtype = bits(op, values[0])
    bound = largest(op, *bounds)
    found = []
    for steps in (HALF_STEPS, WHOLE_STEPS):
        size = step(op, reach, steps["int8"])
        found.append((op.emit("Mul", step(op, bound, steps[dtype]), size), size))
    return [found[0][0], found[1][0], found[0][1]]


def _rounded_filters(op: Operation, weight: Value, factor: float = 1.0) -> Value:
    """Quantize a weight along its first axis, and dequantize it again."""
    axes = vector(op, *range(1, op.rank_of(weight)))
    reach = op.emit("ReduceMax", op.emit("Abs", weight), axes, keepdims=0)
    some = op.emit("Greater", reach, op.constant_like(0, reach))
    size = op.emit("Mul", reach, op.constant_like(factor / HALF_STEPS["int8"], reach))
    size = op.emit("Where", some, size, op.constant_like(1, size))
    zero = op.emit("Expand", op.constant([128], np.uint8), op.emit("Shape", size))
    whole = op.emit("QuantizeLinear", weight, size, zero, axis=0)
    return op.emit("DequantizeLinear", whole, size, zero, axis=0)


def _rounded_whole(
    op: Operation, weight: Value, size: Value, scale: Value | None, factor: float
) -> Value:
    """Quantize a weight times ``scale`` with one step for all of it, and dequantize it again."""
    scaled = weight if scale is None else _along_filters(op, "Mul", weight, scale)
    wide = op.emit("Mul", size, op.constant_like(factor, size))
    zero = op.constant(128, np.uint8)
    whole = op.emit("QuantizeLinear", scaled, wide, zero)
    made = op.emit("DequantizeLinear", whole, wide, zero)
    return made if scale is None else _along_filters(op, "Div", made, scale)


def _along_filters(op: Operation, how: str, weight: Value, factors: Value) -> Value:
    column = vector(op, -1, *[1] * (op.rank_of(weight) - 1))
    return op.emit(how, weight, op.emit("Reshape", factors, column))


def _finished(op: Operation, result: Value, units: Sequence[Value] | None) -> Sequence[Value]:
    """Return the result as real numbers, in the calibrated range, or as int32 sums.

    ``units`` are the step of the sums, and the step that their range is stated in.
    """
    if op.bool("enable_float_output", False):
        return [result]
    limits = calibrated(op)
    if limits is not None:
        dtype = "uint8" if limits[0] >= 0 else "int8"
        bound = max(map(abs, limits))
        size = op.constant(np.float32(bound / HALF_STEPS[dtype]))
        return in_range(op, quantized(op, result, size, dtype), limits)
    if units is None:
        op.unsupported("sums without a calibrated range are not supported", "min_calib_range")
    whole = op.emit("Round", op.emit("Div", result, units[0]))
    total = op.emit("Mul", units[1], op.constant_like(INT32_STEPS, units[1]))
    return op.cast(whole, np.int32), *symmetric(op, op.emit("Reshape", total, vector(op, 1)))
