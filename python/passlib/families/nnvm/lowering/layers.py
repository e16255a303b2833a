"""Layers: convolution, pooling, dense layers, activations with parameters, normalization."""

from __future__ import annotations

import numpy as np

from passlib.errors import GraphError
from passlib.graph.attributes import blame
from passlib.lowering import Lowerings, Operation, Value
from passlib.lowering.extents import dot, pad_spatial

table = Lowerings("nnvm")


DATA = "NCHW"
"""Batch, channel, height, width: ONNX's order of axes."""

KERNEL = "OIHW"
"""Output and input channel, height, width."""


def axis_order(op: Operation, name: str, default: str, wanted: str) -> str:
    """Return a layout, which must be an order of the axes of ``wanted``.

    Raises `UnsupportedError` if the layout has other axes, or split ones as in ``NCHW16c``.
    """
    layout = op.string(name, default)
    if layout == "__undef__":
        return default
    if sorted(layout) != sorted(wanted):
        op.unsupported(f"is not an order of the axes {wanted}", name)
    return layout


def transposed(op: Operation, value: Value, source: str, target: str) -> Value:
    """Transpose the axes of a value from one order to another."""
    if source == target:
        return value
    if op.rank_of(value) != len(source):
        op.unsupported(f"has {op.rank_of(value)} axes, but the layout {source} has {len(source)}")
    return op.emit("Transpose", value, perm=[source.index(axis) for axis in target])


def image(op: Operation) -> tuple[str, Value]:
    """Return the layout of the first input, and the input in ONNX's order of axes."""
    layout, data = axis_order(op, "layout", DATA, DATA), op.inputs[0]
    if op.rank_of(data) != len(DATA):
        op.unsupported(f"needs data with four axes, not {op.rank_of(data)}")
    return layout, transposed(op, data, layout, DATA)


def pair(op: Operation, name: str, default: int | None = None) -> list[int]:
    """Return the numbers for height and width; a single one is for both.

    Raises `UnsupportedError` if the attribute is absent without ``default``, or has more numbers.
    """
    given = op.ints(name) if default is None else op.ints(name, (default, default))
    if len(given) == 1:
        given *= 2
    if len(given) != 2:
        op.unsupported("needs one or two numbers", name)
    return list(given)


def pads(op: Operation) -> list[int]:
    """Return ``padding`` as top, left, bottom, right, from one, two or four numbers."""
    given = op.ints("padding", (0, 0))
    if len(given) == 1:
        return list(given) * 4
    if len(given) == 2:
        return list(given) * 2
    if len(given) != 4:
        op.unsupported("needs one, two or four numbers", "padding")
    return list(given)


def require_shape(op: Operation, value: Value, *wanted: int | None) -> None:
    """Check the known sizes of an input; None stands for any size.

    Raises `GraphError` if the attributes of the node require another shape.
    """
    if value.shape is None:
        return
    sizes = zip(value.shape, wanted, strict=False)
    if len(value.shape) != len(wanted) or any(
        known != size for known, size in sizes if known is not None and size is not None
    ):
        asked = ", ".join("any" if size is None else str(size) for size in wanted)
        raise GraphError(
            f"{blame(op.node)}: {value.name!r} has the shape {value.shape}, but attributes "
            f"and other inputs require ({asked})"
        )


def require_room(
    op: Operation, data: Value, kernel: list[int], dilation: list[int], padding: list[int]
) -> None:
    """Check that a window fits in data in ONNX's order of axes, where their sizes are known.

    Raises `UnsupportedError` if the window does not fit: the result would have no elements.
    """
    for i, size in enumerate((data.shape or ())[2:]):
        span = dilation[i] * (kernel[i] - 1) + 1
        if size is not None and size + padding[i] + padding[i + 2] < span:
            op.unsupported(f"a window of {span} is larger than the padded input of {size}")


@table.register("conv2d")
def convolution(op: Operation) -> Value:
    """Convolve height and width with ``channels`` kernels.

    ``data`` (N, C, H, W), ``weight`` (channels, C / groups, *kernel_size), ``bias`` (channels,)
    unless ``use_bias`` is false; other orders of axes by ``layout``, ``kernel_layout`` and
    ``out_layout``. A size becomes ``(size + padding - dilation * (kernel - 1) - 1) // stride + 1``.
    """
    layout, data, weight, bias = _inputs(op)
    channels, groups, kernel = _extent(op)
    known = None if data.shape is None else data.shape[1]
    require_shape(op, weight, channels, None if known is None else known // groups, *kernel)
    dilation, padding = pair(op, "dilation", 1), pads(op)
    require_room(op, data, kernel, dilation, padding)
    result = op.emit(
        "Conv",
        data,
        weight,
        bias,
        kernel_shape=kernel,
        strides=pair(op, "strides", 1),
        dilations=dilation,
        pads=padding,
        group=groups,
    )
    return transposed(op, result, DATA, axis_order(op, "out_layout", layout, DATA))


@table.register("conv2d_transpose")
def transposed_convolution(op: Operation) -> Value:
    """Transpose of `convolution`: the gradient of one with the same attributes.

    ``data`` (N, C, H, W), ``weight`` (C, channels / groups, *kernel_size), ``bias`` (channels,). A
    size becomes ``stride * (size - 1) + dilation * (kernel - 1) + 1 - padding + output_padding``.
    """
    layout, data, weight, bias = _inputs(op)
    channels, groups, kernel = _extent(op)
    require_shape(op, weight, data.shape[1] if data.shape else None, channels // groups, *kernel)
    strides, extra = pair(op, "strides", 1), pair(op, "output_padding", 0)
    if any(e and e >= s for e, s in zip(extra, strides, strict=True)):
        op.unsupported("is not below the stride", "output_padding")
    dilation, padding = pair(op, "dilation", 1), pads(op)
    for i, size in enumerate(data.shape[2:] if data.shape else ()):
        if size is not None:
            span = strides[i] * (size - 1) + dilation[i] * (kernel[i] - 1) + 1 + extra[i]
            if span <= padding[i] + padding[i + 2]:
                op.unsupported(f"leaves none of {span} rows or columns", "padding")
    result = op.emit(
        "ConvTranspose",
        data,
        weight,
        bias,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilation,
        pads=padding,
        output_padding=extra,
        group=groups,
    )
    return transposed(op, result, DATA, layout)


def _extent(op: Operation) -> tuple[int, int, list[int]]:
    """Return the numbers of output channels and groups, and the size of the kernel."""
    channels, groups = op.int("channels"), op.int("groups", 1)
    if groups < 1 or channels % groups:
        op.unsupported(f"do not divide {channels} channels", "groups")
    return channels, groups, pair(op, "kernel_size")


def _inputs(op: Operation) -> tuple[str, Value, Value, Value | None]:
    """Return the layout, and data, weight and bias in ONNX's order of axes."""
    layout, data = image(op)
    kernel_layout = axis_order(op, "kernel_layout", KERNEL, KERNEL)
    weight = transposed(op, op.inputs[1], kernel_layout, KERNEL)
    bias = op.inputs[2] if op.bool("use_bias", True) else None
    if bias is not None:
        require_shape(op, bias, op.int("channels"))
    if op.attr("out_dtype") not in (None, "same", "-1", "None"):
        dtype = op.dtype("out_dtype")
        if dtype is None or dtype.kind != "f":
            op.unsupported("must be a floating-point type", "out_dtype")
        data, weight = op.cast(data, dtype), op.cast(weight, dtype)
        bias = None if bias is None else op.cast(bias, dtype)
    return layout, data, weight, bias


class _Window:
    """The attributes of a pooling; padding in the order top, left, bottom, right."""

    def __init__(self, op: Operation, data: Value) -> None:
        self.kernel = pair(op, "pool_size")
        self.strides = pair(op, "strides", 1)
        self.pads = pads(op)
        if min(*self.kernel, *self.strides) < 1 or min(self.pads) < 0:
            op.unsupported("windows and strides must be at least 1, padding at least 0")
        require_room(op, data, self.kernel, [1, 1], self.pads)
        self.beyond = [0, 0]
        if op.bool("ceil_mode", False):
            sizes = op.shape_of(data)[2:]
            self.beyond = [
                -(size + self.pads[i] + self.pads[i + 2] - self.kernel[i]) % self.strides[i]
                for i, size in enumerate(sizes)
            ]
        self.pads[2] += self.beyond[0]
        self.pads[3] += self.beyond[1]

    @property
    def is_wide(self) -> bool:
        """Whether a window may be entirely in padding, which ONNX does not allow."""
        return any(pad >= self.kernel[i % 2] for i, pad in enumerate(self.pads))


@table.register("max_pool2d")
def max_pooling(op: Operation) -> Value:
    """Compute the maximum of each window of ``pool_size``.

    ``data`` (N, C, H, W) or by ``layout``. A size becomes
    ``(size + padding - pool_size) // strides + 1``, rounded up with ``ceil_mode``.
    """
    layout, data = image(op)
    window = _Window(op, data)
    padding = window.pads
    if window.is_wide:
        dtype = op.dtype_of(data)
        lowest = np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min
        data, padding = pad_spatial(op, data, padding, float(lowest)), [0] * 4
    result = op.emit(
        "MaxPool", data, kernel_shape=window.kernel, strides=window.strides, pads=padding
    )
    return transposed(op, result, DATA, layout)


@table.register("avg_pool2d")
def average_pooling(op: Operation) -> Value:
    """Compute the mean of each window of ``pool_size``; sizes as in `max_pooling`.

    It is over the elements inside the input, or over the whole window with ``count_include_pad``.
    """
    layout, data = image(op)
    window = _Window(op, data)
    include = op.bool("count_include_pad", False)
    padding, shares = window.pads, None
    if include and any(padding):
        data, padding = pad_spatial(op, data, padding, 0.0), [0] * 4
    elif window.is_wide:
        shares = op.constant_like(_shares(op, window, data), data)
        data, padding = pad_spatial(op, data, padding, 0.0), [0] * 4
    result = op.emit(
        "AveragePool", data, kernel_shape=window.kernel, strides=window.strides, pads=padding
    )
    if shares is not None:
        result = result * shares
    return transposed(op, result, DATA, layout)


@table.register("global_max_pool2d")
def global_max_pooling(op: Operation) -> Value:
    """Compute the maximum over height and width: (N, C, 1, 1), or axes by ``layout``."""
    return _global(op, "GlobalMaxPool")


@table.register("global_avg_pool2d")
def global_average_pooling(op: Operation) -> Value:
    """Compute the mean over height and width: (N, C, 1, 1), or axes by ``layout``."""
    return _global(op, "GlobalAveragePool")


def _global(op: Operation, operator: str) -> Value:
    layout, data = image(op)
    return transposed(op, op.emit(operator, data), DATA, layout)


def _shares(op: Operation, window: _Window, data: Value) -> np.ndarray:
    """Return the factor for each window's mean, so that only elements of the input count."""
    counts = []
    for i, size in enumerate(op.shape_of(data)[2:]):
        total = size + window.pads[i] + window.pads[i + 2]
        starts = np.arange(0, total - window.kernel[i] + 1, window.strides[i]) - window.pads[i]
        inside = np.minimum(starts + window.kernel[i], size) - np.maximum(starts, 0)
        counts.append(np.maximum(inside, 0))
    op.affordable(len(counts[0]), len(counts[1]))
    elements = np.maximum(np.outer(*counts), 1)
    return np.asarray(np.prod(window.kernel) / elements)


@table.register("dense")
def dense(op: Operation) -> Value:
    """Multiply by the transposed weight and add the bias.

    ``data`` (..., n), ``weight`` (units, n), ``bias`` (units,) unless ``use_bias`` is false;
    the result is (..., units).
    """
    units = op.int("units")
    data, weight = op.operands(2, more=True)
    require_shape(op, weight, units, data.shape[-1] if data.shape else None)
    bias = op.inputs[2] if op.bool("use_bias", True) else None
    if bias is not None:
        require_shape(op, bias, units)
    if op.rank_of(data) == 2:
        return op.emit("Gemm", data, weight, bias, transB=1)
    product = data @ op.emit("Transpose", weight, perm=[1, 0])
    return product if bias is None else product + bias


@table.register("matmul")
def matmul(op: Operation) -> Value:
    """Contract the last axis of the first input with the first of the second, like MXNet's ``dot``.

    ``transpose_a`` and ``transpose_b`` transpose matrices first.
    """
    for value, name in zip(op.inputs, ("transpose_a", "transpose_b"), strict=True):
        if op.rank_of(value) != 2 and op.bool(name, False):
            op.unsupported("is defined for matrices only", name)
    return dot(op)


@table.register("leaky_relu")
def leaky_relu(op: Operation) -> Value:
    """Return x, multiplied by ``alpha`` where negative."""
    return op.emit("LeakyRelu", op.inputs[0], alpha=op.float("alpha", 0.25))


@table.register("prelu")
def prelu(op: Operation) -> Value:
    """Apply `leaky_relu` with a slope for each channel: ``alpha`` (C,), channels at ``axis``."""
    data, alpha = op.operands(2)
    axis = op.axis(data, op.int("axis", 1))
    require_shape(op, alpha, data.shape[axis] if data.shape else None)
    following = op.rank_of(data) - axis - 1
    if following:
        alpha = op.emit("Unsqueeze", alpha, range(1, following + 1))
    return op.emit("PRelu", data, alpha)


@table.register("batch_norm")
def batch_norm(op: Operation) -> list[Value]:
    """Normalize each channel by its running mean and variance, as in inference.

    ``data`` any shape with channels at ``axis``; gamma, beta, moving_mean, moving_var (C,). gamma
    is 1 without ``scale``, beta is 0 without ``center``. The outputs mean and var are for training.
    """
    if op.train:
        op.unsupported("is lowered for inference only")
    data, gamma, beta, mean, variance = op.operands(5)
    rank, axis = op.rank_of(data), op.axis(data, op.int("axis", 1))
    channels = op.shape_of(mean)
    if not op.bool("scale", True):
        gamma = op.constant_like(np.ones(channels), data)
    if not op.bool("center", True):
        beta = op.constant_like(np.zeros(channels), data)
    order = [i for i in range(rank) if i != axis]
    order.insert(1, axis)
    moved = axis != 1
    if rank == 1:
        op.unsupported("needs data with at least two axes")
    if moved:
        data = op.emit("Transpose", data, perm=order)
    result = op.emit(
        "BatchNormalization", data, gamma, beta, mean, variance, epsilon=op.float("epsilon", 1e-5)
    )
    if moved:
        result = op.emit("Transpose", result, perm=[order.index(i) for i in range(rank)])
    why = "batch statistics exist in training only"
    hidden = [op.declare(value.dtype, value.shape, why) for value in (mean, variance)]
    return [result, *hidden]


@table.register("dropout")
def dropout(op: Operation) -> list[Value]:
    """Return the input, as in inference; the mask is for training."""
    if op.train and op.float("rate", 0.5) > 0:
        op.unsupported("is lowered for inference only")
    data = op.inputs[0]
    mask = op.declare(data.dtype, data.shape, "the mask exists in training only")
    return [op.emit("Identity", data), mask]


@table.register("l2_normalize")
def l2_normalize(op: Operation) -> Value:
    """Divide by ``sqrt(max(sum of squares along axis, eps))``."""
    data = op.inputs[0]
    axes = [op.axis(data, axis) for axis in op.ints("axis")]
    total = op.emit("ReduceSum", data * data, axes, keepdims=1)
    least = op.emit("Max", total, op.constant_like(op.float("eps"), data))
    return data / op.emit("Sqrt", least)


@table.register("lrn")
def local_response_normalization(op: Operation) -> Value:
    """Divide by ``(bias + alpha / size * sum of squares of nearby channels) ** beta``.

    The sum is over ``size`` channels around each one along ``axis``, with 0 beyond the ends.
    """
    data = op.inputs[0]
    size, axis = op.int("size", 5), op.axis(data, op.int("axis", 1))
    if size % 2 == 0 or size < 1:
        op.unsupported("must be odd and positive", "size")
    require_shape(op, data, *[None] * len(DATA))
    alpha, beta = op.float("alpha", 0.0001), op.float("beta", 0.75)
    for name, number in (("alpha", alpha), ("beta", beta)):
        if not number > 0:
            op.unsupported("must be above 0", name)
    order = [i for i in range(op.rank_of(data)) if i != axis]
    order.insert(1, axis)
    if axis != 1:
        data = op.emit("Transpose", data, perm=order)
    result = op.emit("LRN", data, size=size, alpha=alpha, beta=beta, bias=op.float("bias", 2.0))
    if axis == 1:
        return result
    return op.emit("Transpose", result, perm=[order.index(i) for i in range(len(order))])
