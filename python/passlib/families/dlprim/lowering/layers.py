"""Helpers shared by several families: options, activations, checks of element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.families.dlprim import options
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shapes import pooled, resized
from passlib.lowering import Operation, Value, describe
from passlib.lowering.extents import pad_spatial
from passlib.lowering.types import Misfit


def options_of(op: Operation) -> dict[str, Any]:
    """Read the options of a node, defaults included.

    Raises `UnsupportedError` if an option has an invalid value.
    """
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
    """Return the size of one axis; others may be unknown.

    Raises `UnsupportedError` if the size is unknown.
    """
    op.rank_of(value)
    size = None if value.shape is None else value.shape[axis]
    if size is None:
        op.unsupported(f"needs a known size of axis {axis}, has {describe(value)}")
    return size


def vector_of_one(op: Operation, value: Value) -> Value:
    """Convert a scalar to a tensor of shape (1), since DLPrimitives has no scalars."""
    return op.emit("Reshape", value, op.constant([1], np.int64))


_PAST_END = 2**63 - 1


@table.register("InnerProduct")
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


@table.register("Convolution2D")
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


@table.register("TransposedConvolution2D")
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
        result = op.emit("Slice", result, *(op.constant(bound, "int64") for bound in bounds))
    return activate(op, result, options["activation"])


def _extended(op: Operation, value: Value, extra: list[int], bias: bool) -> Value:
    """Add rows and columns that no window reaches, which hold only the bias."""
    added = op.constant([0, 0, 0, 0, 0, 0, *extra], "int64")
    if not bias:
        return op.emit("Pad", value, added)
    shift = op.emit("Reshape", op.inputs[2], op.constant([1, -1, 1, 1], "int64"))
    plain = op.emit("Pad", op.emit("Sub", value, shift), added)
    return op.emit("Add", plain, shift)


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


@table.register("BatchNorm")
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
    axes = op.constant([axis for axis in range(len(shape)) if axis != 1], np.int64)
    count = np.prod([size for axis, size in enumerate(shape) if axis != 1], dtype=np.float64)
    mean = op.emit("ReduceMean", data, axes, keepdims=1)
    centred = op.emit("Sub", data, mean)
    variance = op.emit("ReduceMean", op.emit("Mul", centred, centred), axes, keepdims=1)
    flat = op.constant([-1], np.int64)
    mean, variance = (op.emit("Reshape", value, flat) for value in (mean, variance))
    with np.errstate(divide="ignore"):
        # A single value has no unbiased variance; the original divides by zero too.
        unbiased = momentum * float(count / np.float64(count - 1))
    _average(op, 1, mean, momentum, momentum)
    _average(op, 2, variance, momentum, unbiased)
    return mean, variance


def _average(op: Operation, index: int, new: Value, momentum: float, share: float) -> None:
    old = op.inputs[index]
    kept = op.emit("Mul", old, op.constant_like(1 - momentum, old))
    op.update(index, op.emit("Add", kept, op.emit("Mul", new, op.constant_like(share, new))))


@table.register("GlobalPooling")
def global_pooling(op: Operation) -> Value:
    """Reduce each channel of (N, C, H, W) to its maximum or average, (N, C, 1, 1)."""
    floats(op, op.inputs[0])
    mode = options_of(op)["mode"]
    return op.emit("GlobalMaxPool" if mode == "max" else "GlobalAveragePool", op.inputs[0])


@table.register("Pooling2D")
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
    if options["mode"] == "max":
        return _maximum(op, data, options, begins + ends)
    return _pooled_average(op, data, options, begins + ends, counts)


def _maximum(op: Operation, data: Value, options: dict[str, Any], pads: list[int]) -> Value:
    if _too_wide(options, pads):
        lowest = float(np.finfo(op.dtype_of(data)).min)
        data, pads = pad_spatial(op, data, pads, lowest), [0] * 4
    kernel, stride = _pooled_window(options)
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
    return op.emit("Mul", mean, op.constant_like(shares, mean))


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
    kernel, stride = _pooled_window(options)
    return op.emit(
        "AveragePool",
        data,
        pads=pads,
        kernel_shape=kernel,
        strides=stride,
        count_include_pad=int(padded),
    )


def _pooled_window(options: dict[str, Any]) -> tuple[list[int], list[int]]:
    return list(options["kernel"]), list(options["stride"])


_Array = np.ndarray[Any, Any]
_FLOAT = np.float32


@table.register("Interpolation")
def interpolation(op: Operation) -> Value:
    """Resize (N, C, H, W) to ``out_h`` and ``out_w``, or by ``scale_y`` and ``scale_x``.

    With r the step in the input, ``nearest`` takes element ``floor(i * r)``, ``nearest-exact``
    ``floor((i + 0.5) * r)``, and ``bilinear`` blends the neighbours of
    ``max(r * (i + 0.5) - 0.5, 0)``, or of ``r * i`` with ``align_corners``. Computed in float32, as
    by the original.
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
    op.affordable(sizes[0])
    op.affordable(sizes[1])
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
        parts.append(op.emit("Mul", taken, op.constant_like(weight.reshape(shape), data)))
    return op.emit("Add", *parts)
