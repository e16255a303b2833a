"""Averages with weights, norms, percentiles, differences and counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import LAST, concatenated, extent, flattened, reshaped, vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.numpy_operators.reduce import finished, mean_of, reduced_axes
from passlib.mxnet.lowering.real_arithmetic import is_real, number_of
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.reduce import averaged, count_of, reduced


@table.register("_npi_average")
def average(op: Operation) -> Value | tuple[Value, Value]:
    """Average over ``axis``, with weights of the data's shape or one for each place of the axis.

    ``returned`` adds the sum of the weights: without axes unless they have the data's shape.
    """
    data = op.inputs[0]
    dtype = op.dtype_of(data)
    axes = reduced_axes(op, data)
    if not op.bool("weighted", True):
        mean = averaged(op, data, axes) if is_real(dtype) else mean_of(op, data, axes, dtype)
        result = finished(op, mean if axes else data, axes)
        return (result, count_of(op, data, axes, dtype)) if op.bool("returned", False) else result
    weights = op.operands(2)[1]
    total: Value
    if op.rank_of(weights) == op.rank_of(data):
        kept = reduced("ReduceSum", op, weights, axes) if axes else weights
        total = finished(op, kept, axes)
    else:
        op.require_rank(weights, 1)
        if len(axes) != 1:
            op.unsupported("must be one axis for weights with one axis", "axis")
        shape = [-1 if axis == axes[0] else 1 for axis in range(op.rank_of(data))]
        weights = op.emit("Reshape", weights, shape)
        kept = reduced("ReduceSum", op, weights, axes)
        total = reshaped(op, kept, [])
    products = data * weights
    products = reduced("ReduceSum", op, products, axes) if axes else products
    result = finished(op, products / kept, axes)
    return (result, total) if op.bool("returned", False) else result


_MATRIX_NORMS = {0: "the largest or smallest singular value", 2: "the sum of singular values"}


@table.register("_npi_norm")
def norm(op: Operation) -> Value:
    """Compute the vector norm of order ``ord`` over ``axis``, or the Frobenius norm of matrices.

    ``flag`` is -2 for all elements, -1 for vectors, 1 for Frobenius, and 0 and 2 for norms by
    singular values, which ONNX does not compute. The default are the last two axes, or all for
    -2. One axis has vector norms whatever the flag.
    """
    data, flag, order = op.inputs[0], op.int("flag", -1), op.float("ord", 2.0)
    if flag in _MATRIX_NORMS:
        op.unsupported(f"ONNX has no operator for {_MATRIX_NORMS[flag]}", "flag")
    if not is_real(op.dtype_of(data)):
        op.unsupported(
            f"is defined for floating-point numbers, not for {op.dtype_of(data)}, whose quotients "
            "MXNet truncates; insert Cast"
        )
    axes = reduced_axes(op, data)
    if flag != -2 and op.optional_ints("axis") is None:
        axes = axes[-2:]
    if not axes:
        return op.emit("Abs", data)
    if flag == -1 and len(axes) == 2 and op.rank_of(data) > 1:
        op.unsupported("a vector norm has one axis", "axis")
    if flag not in (-2, -1, 1) and len(axes) > 1:
        op.unsupported("states no norm of matrices", "flag")
    if order == 2 or flag == -2 or (flag == 1 and len(axes) == 2):
        return finished(op, reduced("ReduceL2", op, data, axes), axes)
    size = op.emit("Abs", data)
    if order == 0:
        size = op.cast(op.cast(size, np.bool_), op.dtype_of(data))
        return finished(op, reduced("ReduceSum", op, size, axes), axes)
    if not np.isfinite(order):
        onnx_operator = "ReduceMax" if order > 0 else "ReduceMin"
        return finished(op, reduced(onnx_operator, op, size, axes), axes)
    powers = size**order
    zero = op.constant_like(0, data)
    if order < 0:
        # MXNet leaves out zeros.
        powers = op.where(size.equals(zero), zero, powers)
    total = reduced("ReduceSum", op, powers, axes)
    root = total ** (1 / order)
    if order < 0:
        root = op.where(total.equals(zero), zero, root)
    return finished(op, root, axes)


def _sorted_last(op: Operation, data: Value, axes: Sequence[int]) -> Value:
    """Merge axes to the last one and sort along it."""
    rank = op.rank_of(data)
    others = [axis for axis in range(rank) if axis not in axes]
    turned = op.emit("Transpose", data, perm=[*others, *axes]) if rank > 1 else data
    rest = tuple(range(len(others), rank))
    flat = reshaped(op, turned, [*((axis,) for axis in range(len(others))), rest])
    # Where another axis is empty, TopK of ONNX Runtime 1.29 ends the process, but not along the
    # first axis.
    sizes = [op.sizes_of(data)[axis] for axis in others]
    if 0 in sizes:
        return flat
    count = extent(op, flat, len(others))
    if None in sizes:
        first = op.emit("Transpose", flat, perm=[len(others), *range(len(others))])
        ordered = op.emit("TopK", first, count, axis=0, largest=0, sorted=1, outputs=2)[0]
        return op.emit("Transpose", ordered, perm=[*range(1, len(others) + 1), 0])
    return op.emit("TopK", flat, count, axis=-1, largest=0, sorted=1, outputs=2)[0]


@table.register("_npi_percentile")
def percentile(op: Operation) -> Value:
    """Compute percentiles ``q`` over ``axis``: q's axes come first.

    ``interpolation`` between the two nearest elements is linear, or takes one of them or the mean.
    """
    data = op.inputs[0]
    dtype = np.dtype(np.float64 if op.dtype_of(data) == np.float64 else np.float32)
    axes = reduced_axes(op, data)
    if any(op.sizes_of(data)[axis] == 0 for axis in axes):
        raise Misfit("an axis without elements has no percentiles")
    number = op.optional_float("q_scalar")
    q = op.operands(2)[1] if number is None else op.constant(number, np.float64)
    q = op.cast(q, np.float64)
    if op.rank_of(q) > 1:
        raise Misfit("q has at most one axis")
    kinds = ("linear", "lower", "higher", "midpoint", "nearest")
    kind = op.string("interpolation", "linear", choices=kinds)
    ordered = op.cast(_sorted_last(op, data, axes), dtype)
    last = count_of(op, data, axes, np.dtype(np.float64)) - 1.0
    place = q / 100.0 * last
    below = op.emit("Floor", place)
    # An exact place is weighed with its neighbour, too: 0 times infinity is NaN in MXNet as well.
    beyond = below + 1.0
    above = op.emit("Ceil", place) if kind == "higher" else op.emit("Min", beyond, last)
    result = _between(op, kind, ordered, (place, below, above))
    rank = op.rank_of(ordered) - 1
    if op.rank_of(q):
        result = op.emit("Transpose", result, perm=[rank, *range(rank)])
    if not op.bool("keepdims", False) or not axes:
        return result
    first = op.rank_of(q)
    return op.emit("Unsqueeze", result, [*(axis + first for axis in axes)])


def _between(op: Operation, kind: str, ordered: Value, places: tuple[Value, Value, Value]) -> Value:
    """Interpolate sorted (..., n) at ``places``, the exact one and its neighbours: (..., q)."""

    def at(place: Value) -> Value:
        return op.emit("Gather", ordered, op.cast(place, np.int64), axis=-1)

    place, below, above = places
    if kind == "lower":
        return at(below)
    if kind == "higher":
        return at(above)
    if kind == "nearest":
        return at(op.emit("Floor", place + 0.5))
    share = place - below
    if kind == "midpoint":
        share = op.emit("Where", share > 0.0, op.constant(0.5), op.constant(0.0))
    weight = op.cast(share, op.dtype_of(ordered))
    return at(below) * (1 - weight) + at(above) * weight


def _gaps(op: Operation, data: Value, axis: int) -> Value:
    tail = op.emit("Slice", data, *(vector(op, number) for number in (1, LAST, axis)))
    head = op.emit("Slice", data, *(vector(op, number) for number in (0, -1, axis)))
    return tail - head


@table.register("_npi_diff")
def diff(op: Operation) -> Value:
    """Subtract neighbours along ``axis``, ``n`` times."""
    data, times = op.inputs[0], op.int("n", 1)
    axis = op.axis(data, op.int("axis", -1))
    op.require_rank(data, least=1)
    size = op.sizes_of(data)[axis]
    if times < 0:
        op.invalid("is negative", "n")
    for _ in range(times if size is None else min(times, size)):
        data = _gaps(op, data, axis)
    return data


@table.register("_npi_ediff1d")
def ediff1d(op: Operation) -> Value:
    """Subtract neighbours of the flattened array, between optional beginning and end."""
    data, *rest = op.inputs
    flat = flattened(op, data)
    parts = [_gaps(op, flat, 0)] if data.shape is None or 0 not in data.shape else [flat]
    for side in ("begin", "end"):
        part: Value | None = None
        if op.bool(f"to_{side}_arr_given", False):
            if not rest:
                raise Misfit(f"it has no input for to_{side}")
            part = flattened(op, op.cast(rest.pop(0), op.dtype_of(data)))
        elif op.optional_float(f"to_{side}_scalar") is not None:
            number = number_of(op, f"to_{side}_scalar", 0.0, op.dtype_of(data))
            part = reshaped(op, number, [1])
        if part is not None:
            parts = [part, *parts] if side == "begin" else [*parts, part]
    return op.emit("Concat", *parts, axis=0)


@table.register("_npi_bincount")
def bincount(op: Operation) -> Value:
    """Count how often each number occurs, or sum its weights; at least ``minlength`` counts."""
    data = op.inputs[0]
    if is_real(op.dtype_of(data)):
        op.unsupported(f"is defined for integers, not for {op.dtype_of(data)}")
    if op.rank_of(data):
        op.require_rank(data, 1)
    places = flattened(op, op.cast(data, np.int64))
    bounds = concatenated(op, [places, vector(op, max(op.int("minlength", 0), 0) - 1)])
    size = op.emit("ReduceMax", bounds, keepdims=1) + vector(op, 1)
    if op.bool("has_weights", False):
        weights = flattened(op, op.operands(2)[1])
    else:
        weights = op.emit("Expand", op.constant_like(1, data), op.emit("Shape", places))
    zeros = op.emit("Expand", op.constant_like(0, weights), size)
    column = op.emit("Unsqueeze", places, [1])
    return op.emit("ScatterND", zeros, column, weights, reduction="add")
