"""The operators of DLPrimitives as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.families.dlprim import options
from passlib.families.dlprim.shapes import pooled, reduced, resized, squeezed
from passlib.lowering import Lowerings, Operation, Value, describe
from passlib.lowering.extents import pad_spatial
from passlib.lowering.types import Misfit

TABLE = Lowerings("DLPrimitives")


def options_of(op: Operation) -> dict[str, Any]:
    """Read the options of a node, defaults included; raise `UnsupportedError` if one is invalid."""
    try:
        return options.read(op.node.op, op.node.attrs)
    except options.OptionError as error:
        op.unsupported(str(error), error.option)


def floats(op: Operation, *values: Value) -> None:
    """Check that the inputs of an operator are floats, as the original requires."""
    for value in values:
        dtype = op.dtype_of(value)
        if dtype.kind not in "fV" or dtype.names is not None:
            op.unsupported(f"computes on real numbers, but receives {dtype}")


def activate(op: Operation, value: Value, name: str) -> Value:
    """Apply one of the standard activations."""
    if name == "identity":
        return value
    if name == "relu6":
        return op.emit("Clip", value, op.constant_like(0, value), op.constant_like(6, value))
    return op.emit({"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}[name], value)


def size_of(op: Operation, value: Value, axis: int) -> int:
    """Return the size of one axis, which must be known; others need not."""
    size = op.sizes_of(value)[axis]
    if size is None:
        op.unsupported(f"needs a known size of axis {axis}, has {describe(value)}")
    return size


def vector_of_one(op: Operation, value: Value) -> Value:
    """Convert a scalar to a tensor of shape (1), since DLPrimitives has no scalars."""
    return op.emit("Reshape", value, [1])


_PAST_END = 2**63 - 1


@TABLE.register("InnerProduct")
def inner_product(op: Operation) -> Value:
    """Multiply (N, ...) with W (outputs, inputs): ``x W^T + bias``, shape (N, outputs).

    All axes but the first count as features.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    data = op.inputs[0]
    if op.rank_of(data) != 2:
        data = op.emit("Flatten", data, axis=1)
    product = op.emit("Gemm", data, *_weights(op, options), transB=1)
    return activate(op, product, options["activation"])


@TABLE.register("Convolution2D")
def convolution(op: Operation) -> Value:
    """Cross-correlate (N, C, H, W) with W (out, C / groups, kh, kw).

    A size becomes ``(size + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1``. C division
    truncates: a kernel that overhangs by less than a stride still has one position, which the
    original pads with zeros.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    ends = list(options["pad"])
    for axis, size in enumerate((op.inputs[0].shape or ())[2:]):
        reach = options["dilate"][axis] * (options["kernel"][axis] - 1) + 1
        if size is not None:  # an image of unknown size that is too small fails at run time
            ends[axis] += max(reach - size - 2 * options["pad"][axis], 0)
    result = op.emit(
        "Conv",
        op.inputs[0],
        *_weights(op, options),
        pads=[*options["pad"], *ends],
        **_window(options),
    )
    return activate(op, result, options["activation"])


@TABLE.register("TransposedConvolution2D")
def transposed_convolution(op: Operation) -> Value:
    """Apply the gradient of a convolution: (N, C, H, W) with W (C, out / groups, kh, kw).

    A size becomes ``(size - 1) * stride - 2 * pad + dilate * (kernel - 1) + output_pad + 1``.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    # ONNX Runtime requires output_padding below stride or dilation; reducing the trailing padding
    # is equivalent and has no such limit.
    ends = [p - more for p, more in zip(options["pad"], options["output_pad"], strict=True)]
    extra = [max(-end, 0) for end in ends]
    cuts = [*options["pad"], *(max(end, 0) for end in ends)]
    # The extension may be all that is left of an axis, so it must precede the cut.
    late = any(extra) and any(cuts)
    result = op.emit(
        "ConvTranspose",
        op.inputs[0],
        *_weights(op, options),
        pads=[0, 0, 0, 0] if late else cuts,
        **_window(options),
    )
    if any(extra):
        result = _extended(op, result, extra, options["bias"])
    if late:
        stops = [-cut or _PAST_END for cut in cuts[2:]]
        bounds = (cuts[:2], stops, [2, 3])
        result = op.emit("Slice", result, *bounds)
    return activate(op, result, options["activation"])


def _extended(op: Operation, value: Value, extra: list[int], bias: bool) -> Value:
    """Add rows and columns that no window reaches, which hold only the bias."""
    added = [0, 0, 0, 0, 0, 0, *extra]
    if not bias:
        return op.emit("Pad", value, added)
    shift = op.emit("Reshape", op.inputs[2], [1, -1, 1, 1])
    return op.emit("Pad", value - shift, added) + shift


def _weights(op: Operation, options: dict[str, Any]) -> list[Value]:
    wanted = 3 if options["bias"] else 2
    if len(op.inputs) != wanted:
        op.unsupported(f"needs {wanted} inputs with this option, has {len(op.inputs)}", "bias")
    return op.inputs[1:]


def _window(options: dict[str, Any]) -> dict[str, Any]:
    return {
        "kernel_shape": list(options["kernel"]),
        "strides": list(options["stride"]),
        "dilations": list(options["dilate"]),
        "group": options["groups"],
    }


@TABLE.register("BatchNorm")
def batch_norm(op: Operation) -> Value:
    """Normalise each channel of (N, C, ...): ``(x - mean) / sqrt(var + eps) * gamma + beta``.

    Inputs are x, running mean, running variance and, with ``affine``, gamma and beta. In training,
    unless ``use_global_stats``, mean and biased variance are those of the batch, with M values for
    each channel, and the running ones become ``(1 - momentum) * old + momentum * new``, where the
    new variance is multiplied by ``M / (M - 1)``.
    """
    options = options_of(op)
    wanted = 5 if options["affine"] else 3
    if len(op.inputs) != wanted:
        op.unsupported(f"needs {wanted} inputs with this option, has {len(op.inputs)}", "affine")
    floats(op, *op.inputs)
    data, mean, variance = op.operands(3, more=True)
    if op.train and not options["use_global_stats"]:
        mean, variance = _of_batch(op, data, options["momentum"])
    if options["affine"]:
        gamma, beta = op.inputs[3:]
    else:
        channels = size_of(op, data, 1)
        gamma = op.constant_like(np.ones(channels), data)
        beta = op.constant_like(np.zeros(channels), data)
    return op.emit("BatchNormalization", data, gamma, beta, mean, variance, epsilon=options["eps"])


def _of_batch(op: Operation, data: Value, momentum: float) -> tuple[Value, Value]:
    shape = op.shape_of(data)
    axes = [axis for axis in range(len(shape)) if axis != 1]
    count = np.prod([size for axis, size in enumerate(shape) if axis != 1], dtype=np.float64)
    mean = op.emit("ReduceMean", data, axes, keepdims=1)
    centred = data - mean
    variance = op.emit("ReduceMean", centred * centred, axes, keepdims=1)
    mean, variance = (op.emit("Reshape", value, [-1]) for value in (mean, variance))
    with np.errstate(divide="ignore"):
        # A single value has no unbiased variance; the original divides by zero too.
        unbiased = momentum * float(count / np.float64(count - 1))
    _average(op, 1, mean, momentum, momentum)
    _average(op, 2, variance, momentum, unbiased)
    return mean, variance


def _average(op: Operation, index: int, new: Value, momentum: float, share: float) -> None:
    old = op.inputs[index]
    op.update(index, old * (1 - momentum) + new * share)


@TABLE.register("GlobalPooling")
def global_pooling(op: Operation) -> Value:
    """Reduce each channel of (N, C, H, W) to its maximum or average, (N, C, 1, 1)."""
    floats(op, op.inputs[0])
    mode = options_of(op)["mode"]
    return op.emit("GlobalMaxPool" if mode == "max" else "GlobalAveragePool", op.inputs[0])


@TABLE.register("Pooling2D")
def pooling(op: Operation) -> Value:
    """Reduce windows of (N, C, H, W) to their maximum or average.

    With ``ceil_mode``, windows may extend beyond the trailing padding. An average divides by the
    part of the window inside the input or, with ``count_include_pad``, inside the padded input.
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    sizes = [size_of(op, data, axis) for axis in (2, 3)]
    counts = [pooled(options, size, axis) for axis, size in enumerate(sizes)]
    if min(counts) < 1:
        op.unsupported(f"the kernel is larger than the padded input {sizes}", "kernel")
    begins = list(options["pad"])
    ends = [
        max((count - 1) * stride + kernel - size - pad, 0)
        for count, stride, kernel, size, pad in zip(
            counts, options["stride"], options["kernel"], sizes, begins, strict=True
        )
    ]
    pads = begins + ends
    if options["mode"] == "avg":
        return _pooled_average(op, data, options, pads, counts)
    if _too_wide(options, pads):
        lowest = float(np.finfo(op.dtype_of(data)).min)
        data, pads = pad_spatial(op, data, pads, lowest), [0] * 4
    kernel, stride = options["kernel"], options["stride"]
    return op.emit("MaxPool", data, pads=pads, kernel_shape=kernel, strides=stride)


def _pooled_average(
    op: Operation, data: Value, options: dict[str, Any], pads: list[int], counts: list[int]
) -> Value:
    padded = options["count_include_pad"]
    symmetric = pads[:2] == pads[2:]
    if not _too_wide(options, pads) and (symmetric or not padded):
        return _mean(op, data, options, pads, padded)
    shares = _shares(op, data, options, counts)
    if _too_wide(options, pads):
        data, pads = pad_spatial(op, data, pads, 0), [0] * 4
    mean = _mean(op, data, options, pads, True)
    return mean * shares


def _shares(
    op: Operation, data: Value, options: dict[str, Any], counts: list[int]
) -> np.ndarray[Any, Any]:
    """Return the ratio of window size to the number of elements averaged, for each position."""
    op.affordable(*counts)
    shares = np.ones((1, 1))
    for axis in (0, 1):
        size = size_of(op, data, axis + 2)
        pad, kernel = options["pad"][axis], options["kernel"][axis]
        start = np.arange(counts[axis]) * options["stride"][axis] - pad
        low, high = (-pad, size + pad) if options["count_include_pad"] else (0, size)
        valid = np.minimum(start + kernel, high) - np.maximum(start, low)
        along = kernel / np.maximum(valid, 1)
        shares = shares * (along[:, None] if axis == 0 else along[None, :])
    return shares


def _too_wide(options: dict[str, Any], pads: list[int]) -> bool:
    """Whether some padding is as wide as the window, which ONNX Runtime rejects."""
    return any(pad >= kernel for pad, kernel in zip(pads, options["kernel"] * 2, strict=True))


def _mean(
    op: Operation, data: Value, options: dict[str, Any], pads: list[int], padded: bool
) -> Value:
    window = {"kernel_shape": options["kernel"], "strides": options["stride"]}
    result: Value = op.emit("AveragePool", data, pads=pads, count_include_pad=int(padded), **window)
    return result


_Array = np.ndarray[Any, Any]
_FLOAT = np.float32


@TABLE.register("Interpolation")
def interpolation(op: Operation) -> Value:
    """Resize (N, C, H, W) to ``out_h`` and ``out_w``, or by ``scale_y`` and ``scale_x``.

    With r the step in the input, ``nearest`` takes element ``floor(i * r)``, ``nearest-exact``
    ``floor((i + 0.5) * r)``, and ``bilinear`` blends the neighbours of ``max(r * (i + 0.5) - 0.5,
    0)``, or of ``r * i`` with ``align_corners``. Computed in float32, as by the original.
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    height, width = (size_of(op, data, axis) for axis in (2, 3))
    try:
        sizes = resized(options, height, width)
    except Misfit as error:
        op.unsupported(str(error), "scale_y")
    if min(sizes) < 1:
        op.unsupported(f"returns an empty image, {sizes}")
    for size in sizes:
        op.affordable(size)
    scales = (options["scale_y"], options["scale_x"])
    if options["method"] != "bilinear":
        offset = 0.5 if options["method"] == "nearest-exact" else 0.0
        for axis, before, after, scale in zip((2, 3), (height, width), sizes, scales, strict=True):
            index = op.constant(_nearest(before, after, scale, offset), np.int64)
            data = op.emit("Gather", data, index, axis=axis)
        return data
    # Columns first: the original blends two elements of each row, then the two rows.
    for axis, before, after, scale in reversed(
        list(zip((2, 3), (height, width), sizes, scales, strict=True))
    ):
        step = _step(before, after, scale, options["align_corners"])
        data = _blended(op, data, axis, _neighbours(before, after, step, options["align_corners"]))
    return data


def _nearest(before: int, after: int, scale: float, offset: float) -> _Array:
    step = _FLOAT(1 / scale) if scale > 0 else _FLOAT(before) / _FLOAT(after)
    places: _Array = (np.arange(after, dtype=_FLOAT) + _FLOAT(offset)) * step
    chosen: _Array = np.minimum(places.astype(np.int64), before - 1)
    return chosen


def _step(before: int, after: int, scale: float, align_corners: bool) -> float:
    """Return the step in the input for each new element; callers round it to float32."""
    if align_corners:
        return (before - 1) / (after - 1) if after > 1 else 0.0
    return 1.0 / float(_FLOAT(scale)) if scale > 0 else before / after


def _neighbours(
    before: int, after: int, step: float, align_corners: bool
) -> tuple[_Array, _Array, _Array]:
    """Return lower and upper neighbours and weights of the upper ones, by new position."""
    places = np.arange(after, dtype=_FLOAT)
    if align_corners:
        places = places * _FLOAT(step)
    else:
        places = np.maximum(_FLOAT(step) * (places + _FLOAT(0.5)) - _FLOAT(0.5), _FLOAT(0))
    lower = np.minimum(places.astype(np.int64), before - 1)
    upper = np.minimum(lower + 1, before - 1)
    return lower, upper, places - lower.astype(_FLOAT)


def _blended(
    op: Operation, data: Value, axis: int, neighbours: tuple[_Array, _Array, _Array]
) -> Value:
    lower, upper, share = neighbours
    shape = (1, 1, -1, 1) if axis == 2 else (1, 1, 1, -1)
    parts = []
    for index, weight in ((lower, _FLOAT(1) - share), (upper, share)):
        taken = op.emit("Gather", data, op.constant(index, np.int64), axis=axis)
        parts.append(taken * weight.reshape(shape))
    return parts[0] + parts[1]


@TABLE.register("Abs")
def absolute(op: Operation) -> Value:
    """Take the absolute value."""
    floats(op, op.inputs[0])
    return op.emit("Abs", op.inputs[0])


@TABLE.register("Activation")
def activation(op: Operation) -> Value:
    """Apply relu, tanh, sigmoid, relu6 (0 to 6) or identity."""
    (data,) = op.operands(1)
    name = options_of(op)["activation"]
    if name == "identity":
        return op.emit("Identity", data)
    floats(op, data)
    return activate(op, data, name)


@TABLE.register("Elementwise")
def elementwise(op: Operation) -> Value:
    """Combine two tensors, with NumPy's broadcasting, then apply ``activation``.

    ``sum`` is ``coef1 * a + coef2 * b``, ``prod`` is ``coef1 * coef2 * a * b``, ``max`` the
    larger of ``coef1 * a`` and ``coef2 * b``.
    """
    floats(op, *op.inputs)
    options = options_of(op)
    left, right = op.operands(2)
    first, second = options["coef1"], options["coef2"]
    if options["operation"] == "prod":
        value = _scaled(left * right, first * second)
    else:
        kind = "Add" if options["operation"] == "sum" else "Max"
        value = op.emit(kind, _scaled(left, first), _scaled(right, second))
    return activate(op, value, options["activation"])


@TABLE.register("Hardtanh")
def hardtanh(op: Operation) -> Value:
    """Clip to ``min_val`` and ``max_val``; if these are swapped, ``min_val`` wins."""
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    below = op.emit("Min", data, op.constant_like(options["max_val"], data))
    return op.emit("Max", below, op.constant_like(options["min_val"], data))


@TABLE.register("Threshold")
def threshold(op: Operation) -> Value:
    """Return 1 where an element is above ``threshold``, otherwise 0."""
    (data,) = op.operands(1)
    floats(op, data)
    return op.cast(data > options_of(op)["threshold"], op.dtype_of(data))


def _scaled(value: Value, factor: float) -> Value:
    return value if factor == 1 else value * factor


_METHODS = {
    "sum": "ReduceSum",
    "sumsq": "ReduceSumSquare",
    "abssum": "ReduceL1",
    "mean": "ReduceMean",
}


@TABLE.register("Reduction")
def reduction(op: Operation) -> Value:
    """Reduce the axes ``dims``, or those from ``start_axis`` on, and multiply by ``output_scale``.

    ``method`` is ``sum``, ``mean``, ``sumsq`` (of squares) or ``abssum`` (of absolute values).
    Without ``keep_dim`` the axes are removed; if none is left, the shape is (1).
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    rank = op.rank_of(data)
    try:
        axes = reduced(options, rank)
    except Misfit as error:
        op.unsupported(str(error), "dims" if options["dims"] else "start_axis")
    keep = int(options["keep_dim"])
    result = op.emit(_METHODS[options["method"]], data, axes, keepdims=keep)
    if not keep and len(axes) == rank:
        result = vector_of_one(op, result)
    return _scaled(result, options["output_scale"])


@TABLE.register("Concat")
def concat(op: Operation) -> Value:
    """Concatenate tensors along axis ``dim``."""
    dim = options_of(op)["dim"]
    if not 0 <= dim < op.rank_of(op.inputs[0]):
        op.unsupported(f"there is no axis {dim}", "dim")
    return op.emit("Concat", *op.inputs, axis=dim)


@TABLE.register("Slice")
def slice_(op: Operation) -> Value:
    """Return elements ``begin`` up to ``end`` along axis ``dim``; end -1 includes the last."""
    (data,) = op.operands(1)
    options = options_of(op)
    dim, begin, end = options["dim"], options["begin"], options["end"]
    if not 0 <= dim < op.rank_of(data):
        op.unsupported(f"there is no axis {dim}", "dim")
    size = size_of(op, data, dim)
    if not 0 <= begin < (size if end == -1 else end) <= size:
        op.unsupported(f"cannot take {begin} to {end} of {size} elements", "end")
    return op.emit("Slice", data, [begin], [size if end == -1 else end], [dim])


@TABLE.register("Flatten")
def flatten(op: Operation) -> Value:
    """Reshape (N, ...) to a matrix of N rows."""
    return op.emit("Flatten", op.inputs[0], axis=1)


@TABLE.register("Squeeze")
def squeeze(op: Operation) -> Value:
    """Remove the axes ``dims``, or with ``all`` every axis of size 1; if none is left, keep (1)."""
    (data,) = op.operands(1)
    options = options_of(op)
    if options["all"]:
        shape = op.shape_of(data)
    else:  # ONNX Runtime checks open sizes
        shape = tuple(1 if size is None else size for size in op.sizes_of(data))
    try:
        axes = squeezed(options, shape)
    except Misfit as error:
        op.unsupported(str(error), "dims")
    if not axes:
        return op.emit("Identity", data)
    result = op.emit("Squeeze", data, axes)
    return vector_of_one(op, result) if len(axes) == len(shape) else result


@TABLE.register("Reshape")
def reshape(op: Operation) -> Value:
    """Reshape to ``dims``: 0 copies the size of the input, -1 follows from the other sizes."""
    return op.emit("Reshape", op.inputs[0], options_of(op)["dims"])


@TABLE.register("Parameter")
def parameter(op: Operation) -> Value:
    """Return the parameter itself."""
    return op.emit("Identity", op.inputs[0])


@TABLE.register("Softmax")
def softmax(op: Operation) -> Value:
    """Apply softmax along axis 1 of (N, C) or (N, C, L); with ``log``, its logarithm."""
    (data,) = op.operands(1)
    floats(op, data)
    if op.rank_of(data) not in (2, 3):
        op.unsupported(f"needs 2 or 3 dimensions, has {op.rank_of(data)}")
    return op.emit("LogSoftmax" if options_of(op)["log"] else "Softmax", data, axis=1)


@TABLE.register("SoftmaxWithLoss")
def softmax_with_loss(op: Operation) -> Value:
    """Average ``-log softmax(x)[label]`` of x (N, C) over N, as a tensor of shape (1).

    A label outside 0 to C - 1 makes the run fail, as in the original.
    """
    scores, label = op.operands(2)
    floats(op, scores)
    classes = size_of(op, scores, 1)
    index = _column(op, label)
    # ONNX counts negative indices from the end, but here they must fail.
    index = op.where(index >= 0, index, classes)
    chosen = op.emit("GatherElements", op.emit("LogSoftmax", scores, axis=1), index, axis=1)
    return vector_of_one(op, -op.emit("ReduceMean", chosen, keepdims=0))


@TABLE.register("NLLLoss")
def negative_log_likelihood(op: Operation) -> Value:
    """Return ``-x[label]`` of x (N, C): each, their mean or their sum, as ``reduce`` states.

    A label outside 0 to C - 1 contributes 0.
    """
    scores, label = op.operands(2)
    floats(op, scores)
    classes = np.arange(size_of(op, scores, 1))[None, :]
    masked = op.where(_column(op, label).equals(classes), scores, 0)
    return _reduced(op, -op.emit("ReduceSum", masked, [1], keepdims=0))


@TABLE.register("MSELoss")
def mean_square_error(op: Operation) -> Value:
    """Square the difference of two tensors; return each element, their mean or their sum."""
    floats(op, *op.inputs)
    left, right = op.operands(2)
    difference = left - right
    return _reduced(op, difference * difference)


def _column(op: Operation, label: Value) -> Value:
    """Convert integer or real labels to indices of shape (N, 1), truncating as C does."""
    return op.emit("Reshape", op.cast(label, np.int64), [-1, 1])


def _reduced(op: Operation, value: Value) -> Value:
    reduction = options_of(op)["reduce"]
    if reduction == "none":
        return value
    kind = "ReduceMean" if reduction == "mean" else "ReduceSum"
    return vector_of_one(op, op.emit(kind, value, keepdims=0))
