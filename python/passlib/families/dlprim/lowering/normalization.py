"""Batch normalisation, for inference and for training."""

from __future__ import annotations

import numpy as np

from passlib.families.dlprim.lowering.common import floats, options_of, size_of
from passlib.families.dlprim.lowering.table import table
from passlib.lowering import Operation, Value


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
