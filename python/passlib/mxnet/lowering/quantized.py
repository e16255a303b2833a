"""Operators of quantized models, on 8-bit integers that stand for real numbers of a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from passlib.graph.attributes import Attributes
from passlib.graph.node import Node
from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.neural.activation import selfatt_qk, selfatt_valatt
from passlib.mxnet.lowering.neural.convolution import embedding, spatial
from passlib.mxnet.lowering.neural.pooling import pooling
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.shape import flatten

WHOLE_STEPS = {"int8": 127.0, "uint8": 255.0}
HALF_STEPS = {"int8": 127.5, "uint8": 255.5}
INT32_STEPS = 2.0**31 - 1


def bits(op: Operation, value: Value) -> str:
    """Return the name of the element type of 8-bit numbers.

    Raises `UnsupportedError` if it is another type.
    """
    name: str = op.dtype_of(value).name
    if name not in WHOLE_STEPS:
        op.unsupported(f"input {value.name!r} must be int8 or uint8, not {name}")
    return name


def real(op: Operation, number: float) -> Value:
    """Add a float32 constant of shape (1,), the form of ranges."""
    return op.constant([number], np.float32)


def largest(op: Operation, *bounds: Value) -> Value:
    """Return the largest absolute value of some bounds."""
    sizes = [op.emit("Abs", bound) for bound in bounds]
    return sizes[0] if len(sizes) == 1 else op.emit("Max", *sizes)


def symmetric(op: Operation, bound: Value) -> tuple[Value, Value]:
    """Return the range from -bound to bound."""
    return -bound, op.emit("Identity", bound)


def calibrated(op: Operation) -> tuple[float, float] | None:
    """Read the range that calibration found; None for a model without calibration."""
    low, high = op.optional_float("min_calib_range"), op.optional_float("max_calib_range")
    return None if low is None or high is None else (low, high)


def in_range(op: Operation, value: Value, limits: tuple[float, float]) -> tuple[Value, ...]:
    """Return a value with a calibrated range."""
    return value, *(op.emit("Identity", real(op, limit)) for limit in limits)


def step(op: Operation, bound: Value, steps: float) -> Value:
    """Return the real number that one step stands for, as a scalar."""
    return op.emit("Reshape", bound / steps, op.constant(np.zeros(0, np.int64)))


def quantized(op: Operation, value: Value, size: Value, dtype: str) -> Value:
    """Divide by the size of a step, round to even, saturate to the 8-bit type."""
    return op.emit("QuantizeLinear", value, size, op.constant(0, dtype))


def dequantized(op: Operation, value: Value, size: Value) -> Value:
    """Multiply an 8-bit value by the size of a step.

    int8 values become uint8 first: on processors without VNNI, ONNX Runtime 1.31 refuses models
    in which a change of shape follows the DequantizeLinear of an int8 value.
    """
    moved, zero = unsigned(op, value)
    return op.emit("DequantizeLinear", moved, size, op.constant(zero, np.uint8))


def unsigned(op: Operation, value: Value) -> tuple[Value, int]:
    """Return an 8-bit value as uint8, and its zero point.

    Products of uint8 and int8 saturate in ONNX Runtime's kernels for processors without VNNI;
    those of two uint8 operands are exact everywhere.
    """
    if bits(op, value) == "uint8":
        return value, 0
    return op.cast(op.cast(value, np.int32) + 128, np.uint8), 128


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
        sums = sums + op.emit("Reshape", op.cast(inputs[2], np.int32), [-1, 1, 1])
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
        data = op.emit("Reshape", data, [0, -1])
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
        ratio = step(op, largest(op, *bounds[4:6]), WHOLE_STEPS["int8"]) / unit
        sums = sums + op.cast(op.cast(inputs[2], np.float32) * ratio, np.int32)
    return sums, *_range(op, bounds, WHOLE_STEPS[dtype])


def _steps(op: Operation, bounds: Sequence[Value], data_steps: float) -> list[Value]:
    """Return the steps of data and weight, whose ranges come first in ``bounds``."""
    return [
        step(op, largest(op, *bounds[:2]), data_steps),
        step(op, largest(op, *bounds[2:4]), WHOLE_STEPS["int8"]),
    ]


def _range(op: Operation, bounds: Sequence[Value], data_steps: float) -> tuple[Value, Value]:
    """Return the range of int32 sums: their step is the product of the operands' steps."""
    bound = op.emit("Mul", *_steps(op, bounds, data_steps)) * INT32_STEPS
    return symmetric(op, op.emit("Reshape", bound, [1]))


@table.register("_contrib_quantize")
def quantize(op: Operation) -> Sequence[Value]:
    """Quantize with a given range: data, minimum, maximum to 8-bit data and its range.

    The step is the largest absolute value of the range over 127 (int8) or 255 (uint8).
    """
    data, low, high = op.operands(3)
    dtype = op.string("out_type", "uint8", choices=("int8", "uint8"))
    bound = largest(op, low, high)
    made = quantized(op, data, step(op, bound, WHOLE_STEPS[dtype]), dtype)
    if dtype == "int8":
        return made, *symmetric(op, bound)
    return made, op.emit("Identity", low), op.emit("Identity", high)


@table.register("_contrib_quantize_v2")
def quantize_v2(op: Operation) -> Sequence[Value]:
    """Quantize with the calibrated range, or with the range of the data.

    The step is the largest absolute value of the range over 127.5 (int8) or 255.5 (uint8). With
    ``out_type`` auto the result is uint8 if the calibrated range has no negative number. 8-bit
    data keep their bits, and have one step for each whole number without a calibrated range.
    """
    (data,) = op.operands(1)
    limits = calibrated(op)
    dtype = _chosen(op, limits)
    own = op.dtype_of(data).name
    if own in HALF_STEPS:
        most = HALF_STEPS[own]
        low_end = -most if own == "int8" else 0.0
        return in_range(op, op.emit("Identity", op.cast(data, dtype)), limits or (low_end, most))
    if op.dtype_of(data) != np.float32:
        op.invalid(f"quantizes float32, int8 and uint8, not {op.dtype_of(data)}")
    if limits is not None:
        most = max(map(abs, limits))
        size = op.constant(np.float32(most) / np.float32(HALF_STEPS[dtype]))
        made = quantized(op, data, size, dtype)
        return in_range(op, made, (-most, most) if dtype == "int8" else limits)
    ends = [op.emit(f"Reduce{which}", data, keepdims=0) for which in ("Min", "Max")]
    low, high = (op.emit("Reshape", end, op.constant([1], np.int64)) for end in ends)
    bound = largest(op, low, high)
    made = quantized(op, data, step(op, bound, HALF_STEPS[dtype]), dtype)
    return made, *(symmetric(op, bound) if dtype == "int8" else (low, high))


@table.register("_contrib_dequantize")
def dequantize(op: Operation) -> Value:
    """Convert 8-bit data and its range to float32; 127.5 or 255.5 steps make the range."""
    data, low, high = op.operands(3)
    return dequantized(op, data, step(op, largest(op, low, high), HALF_STEPS[bits(op, data)]))


@table.register("_contrib_requantize")
def requantize(op: Operation) -> Sequence[Value]:
    """Convert int32 sums with their range to 8-bit data with the calibrated or actual range."""
    data, low, high = op.operands(3)
    limits = calibrated(op)
    dtype = _chosen(op, limits)
    numbers = op.cast(data, np.float32) * step(op, largest(op, low, high), INT32_STEPS)
    if limits is not None:
        bound = real(op, max(map(abs, limits)))
    else:
        size = op.emit("ReduceMax", op.emit("Abs", numbers), keepdims=0)
        bound = op.emit("Reshape", size, op.constant([1], np.int64))
    made = quantized(op, numbers, step(op, bound, WHOLE_STEPS[dtype]), dtype)
    if dtype == "int8":
        return made, *symmetric(op, bound)
    return made, op.emit("Identity", real(op, 0)), op.emit("Identity", bound)


def _chosen(op: Operation, limits: tuple[float, float] | None) -> str:
    dtype = op.string("out_type", "int8", choices=("auto", "int8", "uint8"))
    if dtype == "auto":
        return "uint8" if limits is not None and limits[0] >= 0 else "int8"
    return dtype


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


@table.register("_contrib_quantized_flatten")
def quantized_flatten(op: Operation) -> Sequence[Value]:
    """Flatten all axes but the first; the range stays."""
    data, *bounds = op.operands(3)
    op.inputs[:] = [data]
    return flatten(op), *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_pooling")
def quantized_pooling(op: Operation) -> Sequence[Value]:
    """Pool 8-bit numbers, averages rounded to even; the range stays."""
    data, *bounds = op.operands(3)
    if op.string("pool_type", "max") not in ("max", "avg"):
        op.unsupported("MXNet quantizes maximum and average only", "pool_type")
    dtype = bits(op, data)
    op.inputs[:] = [op.cast(data, np.float32)]
    result = op.cast(op.emit("Round", pooling(op)[0]), dtype)
    return result, *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_act")
def quantized_activation(op: Operation) -> Sequence[Value]:
    """Apply max(x, 0) to int8 numbers; the range stays.

    uint8 numbers come out as the int8 numbers of the same bits, as in MXNet 1.9.1.
    """
    op.string("act_type", choices=("relu",))
    data, *bounds = op.operands(3)
    result = op.cast(data, np.int8) if bits(op, data) == "uint8" else op.emit("Max", data, 0)
    return result, *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_embedding")
def quantized_embedding(op: Operation) -> Sequence[Value]:
    """Look up rows of an 8-bit table; the range stays."""
    data, weight, *bounds = op.operands(4)
    op.inputs[:] = [data, weight]
    return embedding(op), *(op.emit("Identity", bound) for bound in bounds)


@table.register("_contrib_quantized_elemwise_add")
def quantized_add(op: Operation) -> Sequence[Value]:
    """Add 8-bit arrays; the result has the calibrated range, or is int32 with the sum of ranges.

    It is uint8 if both operands are.
    """
    left, right, *bounds = op.operands(6)
    dtypes = [bits(op, value) for value in (left, right)]
    limits = calibrated(op)
    reach = [largest(op, *bounds[:2]), largest(op, *bounds[2:])]
    if limits is None:
        if dtypes[0] != dtypes[1]:
            op.unsupported("MXNet 1.9.1 drops the uint8 operand where no range is calibrated")
        total = op.emit("Add", *reach)
        steps = [step(op, bound, HALF_STEPS[dtypes[0]]) for bound in reach]
        wide = op.cast(_sum(op, (left, right), steps), np.float64) / _wide_step(op, total)
        return op.cast(op.emit("Round", wide), np.int32), *symmetric(op, total)
    dtype = "uint8" if dtypes == ["uint8", "uint8"] else "int8"
    steps = [step(op, bound, WHOLE_STEPS[kind]) for bound, kind in zip(reach, dtypes, strict=True)]
    return in_range(op, _within(op, _sum(op, (left, right), steps), limits, dtype), limits)


@table.register("_contrib_quantized_elemwise_mul")
def quantized_multiply(op: Operation) -> Sequence[Value]:
    """Multiply int8 arrays, to real numbers, int32 products or 8-bit numbers.

    8-bit results are truncated, not rounded, as in MXNet 1.9.1.
    """
    left, right, *bounds = op.operands(6)
    if {op.dtype_of(left), op.dtype_of(right)} != {np.dtype(np.int8)}:
        op.unsupported("both operands must be int8")
    reach = [largest(op, *bounds[:2]), largest(op, *bounds[2:])]
    if op.bool("enable_float_output", False):
        steps = [step(op, bound, HALF_STEPS["int8"]) for bound in reach]
        pairs = zip((left, right), steps, strict=True)
        return [op.emit("Mul", *(dequantized(op, value, size) for value, size in pairs))]
    product = op.cast(left, np.int32) * op.cast(right, np.int32)
    unit = op.emit("Mul", *(step(op, bound, WHOLE_STEPS["int8"]) for bound in reach))
    limits = calibrated(op)
    if limits is None:
        return product, *symmetric(op, op.emit("Reshape", unit * INT32_STEPS, [1]))
    size = op.constant(np.float32(max(map(abs, limits)) / WHOLE_STEPS["int8"]))
    scaled = op.cast(product, np.float32) * (unit / size)
    ends = (op.constant(number, np.float32) for number in (-128, 127))
    return in_range(op, op.cast(op.emit("Clip", scaled, *ends), np.int8), limits)


@table.register("_contrib_quantized_concat")
def quantized_concat(op: Operation) -> Sequence[Value]:
    """Concatenate 8-bit arrays in a common range: int8 if one of them is."""
    count = op.int("num_args")
    inputs = op.operands(3 * count)
    arrays, bounds = inputs[:count], inputs[count:]
    dtypes = [bits(op, value) for value in arrays]
    dtype = "int8" if "int8" in dtypes else "uint8"
    lows, highs = bounds[::2], bounds[1::2]
    low = lows[0] if count == 1 else op.emit("Min", *lows)
    high = highs[0] if count == 1 else op.emit("Max", *highs)
    size = step(op, largest(op, low, high), WHOLE_STEPS[dtype])
    parts = []
    for value, kind, first, last in zip(arrays, dtypes, lows, highs, strict=True):
        own = step(op, largest(op, first, last), WHOLE_STEPS[kind])
        parts.append(quantized(op, dequantized(op, value, own), size, dtype))
    result = op.emit("Concat", *parts, axis=op.axis(arrays[0], op.int("dim", 1)))
    return result, op.emit("Identity", low), op.emit("Identity", high)


@table.register("_contrib_quantized_batch_norm")
def quantized_batch_norm(op: Operation) -> Sequence[Value]:
    """Normalise 8-bit data with the moving statistics, to int8 in the calibrated range.

    The channels are axis 1. ``gamma`` counts whatever ``fix_gamma`` says, as in MXNet 1.9.1.
    """
    data, *parameters = op.operands(7)
    limits = calibrated(op)
    if limits is None:
        op.unsupported("MXNet 1.9.1 computes it with a calibrated range only", "min_calib_range")
    bound = largest(op, *parameters[4:])
    small = step(op, bound, HALF_STEPS["int8"])
    if bits(op, data) == "uint8":
        numbers = dequantized(op, data, step(op, bound, HALF_STEPS["uint8"]))
        data = quantized(op, numbers, small, "int8")
    numbers = dequantized(op, data, small)
    gamma, beta, mean, variance = parameters[:4]
    epsilon = op.float("eps", 1e-3)
    if epsilon <= -1:
        op.unsupported("leaves no variance", "eps")
    scale = gamma / op.emit("Sqrt", variance + epsilon)
    shift = beta - mean * scale
    # oneDNN sees a variance of 1, to which it adds epsilon once more.
    scale = scale * (1 / math.sqrt(1 + epsilon))
    column = vector(op, -1, *[1] * (op.rank_of(data) - 2))
    scale, shift = (op.emit("Reshape", value, column) for value in (scale, shift))
    result = numbers * scale + shift
    size = step(op, real(op, max(map(abs, limits))), HALF_STEPS["int8"])
    return in_range(op, quantized(op, result, size, "int8"), limits)


def _sum(op: Operation, values: Sequence[Value], steps: Sequence[Value]) -> Value:
    pairs = zip(values, steps, strict=True)
    return op.emit("Add", *(dequantized(op, value, size) for value, size in pairs))


def _within(op: Operation, value: Value, limits: tuple[float, float], dtype: str) -> Value:
    size = step(op, real(op, max(map(abs, limits))), WHOLE_STEPS[dtype])
    return quantized(op, value, size, dtype)


def _wide_step(op: Operation, bound: Value) -> Value:
    """Return the step of int32 numbers in double precision: float32 cannot count them."""
    return op.cast(bound, np.float64) / INT32_STEPS


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
            step(op, reach[0], steps[dtype]) * step(op, reach[1], steps["int8"])
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
    factor = op.emit("Reciprocal", op.emit("Sqrt", variance + attributes.float("eps", 1e-3)))
    return factor if attributes.bool("fix_gamma", True) else factor * gamma


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
        found.append((step(op, bound, steps[dtype]) * size, size))
    return [found[0][0], found[1][0], found[0][1]]


def _rounded_filters(op: Operation, weight: Value, factor: float = 1.0) -> Value:
    """Quantize a weight along its first axis, and dequantize it again."""
    axes = vector(op, *range(1, op.rank_of(weight)))
    reach = op.emit("ReduceMax", op.emit("Abs", weight), axes, keepdims=0)
    some = reach > 0
    size = reach * (factor / HALF_STEPS["int8"])
    size = op.where(some, size, 1)
    zero = op.emit("Expand", op.constant([128], np.uint8), op.emit("Shape", size))
    whole = op.emit("QuantizeLinear", weight, size, zero, axis=0)
    return op.emit("DequantizeLinear", whole, size, zero, axis=0)


def _rounded_whole(
    op: Operation, weight: Value, size: Value, scale: Value | None, factor: float
) -> Value:
    """Quantize a weight times ``scale`` with one step for all of it, and dequantize it again."""
    scaled = weight if scale is None else _along_filters(op, "Mul", weight, scale)
    wide = size * factor
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
        size = op.constant(np.float32(max(map(abs, limits)) / HALF_STEPS[dtype]))
        return in_range(op, quantized(op, result, size, dtype), limits)
    if units is None:
        op.unsupported("sums without a calibrated range are not supported", "min_calib_range")
    whole = op.emit("Round", result / units[0])
    total = units[1] * INT32_STEPS
    return op.cast(whole, np.int32), *symmetric(op, op.emit("Reshape", total, [1]))
