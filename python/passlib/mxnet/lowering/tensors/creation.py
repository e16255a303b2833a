"""Arrays from attributes or the shape of another; diagonals and triangles of matrices.

In NumPy mode (``_npi_*``), a size of 0 is a size, and no sizes are an array without axes.
"""

from __future__ import annotations

import json
import math
from functools import partial

import numpy as np

from passlib.arrays import dtypes
from passlib.lowering import Operation, TypeSpec, Value
from passlib.lowering.extents import concatenated, extent, places, reshaped, vector
from passlib.mxnet.lowering.real_arithmetic import element_type, is_real, number_of
from passlib.mxnet.lowering.table import table


def diagonal_mask(op: Operation, rows: int, columns: int, k: int) -> Value:
    """Return truth values (rows, columns), true on diagonal ``k``; computed at run time."""
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    row = op.emit("Range", zero, op.constant(rows, np.int64), one)
    column = op.emit("Range", zero, op.constant(columns, np.int64), one)
    return (op.emit("Unsqueeze", row, [1]) + k).equals(column)


def diagonal_line(op: Operation, matrices: Value, k: int) -> Value:
    """Extract diagonal ``k`` of matrices (..., r, c) as the last axis; it may be empty."""
    first = op.rank_of(matrices) - 2
    kept = [(axis,) for axis in range(first)]
    flat = reshaped(op, matrices, [*kept, (first, first + 1)])
    return op.emit("Gather", flat, _line_places(op, matrices, k), axis=-1)


def _line_places(op: Operation, matrices: Value, k: int) -> Value:
    """Return the flat positions of diagonal ``k``, int64, computed at run time if need be."""
    rank = op.rank_of(matrices)
    rows, columns = op.sizes_of(matrices)[-2:]
    if rows is not None and columns is not None:
        count = max(min(rows + min(k, 0), columns - max(k, 0)), 0)
        begin = k if k >= 0 else -k * columns
        return op.constant(begin + np.arange(count) * (columns + 1), np.int64)
    height, width = (extent(op, matrices, axis) for axis in (rank - 2, rank - 1))
    ends = (height + vector(op, min(k, 0)), width - vector(op, max(k, 0)))
    length = op.emit("Max", op.emit("Min", *ends), [0])
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    numbers = op.emit("Range", zero, op.emit("Squeeze", length, [0]), one)
    start = vector(op, k) if k >= 0 else width * vector(op, -k)
    return start + numbers * (width + vector(op, 1))


def _gathered(op: Operation, data: Value, table_of_places: np.ndarray) -> Value:
    """Gather the elements of matrices (..., r, c) at flat places."""
    shape = op.shape_of(data, least=2)
    flat = op.emit("Reshape", data, [*shape[:-2], shape[-2] * shape[-1]])
    return op.emit("Gather", flat, op.constant(table_of_places, np.int64), axis=-1)


def _spread(op: Operation, data: Value, sources: np.ndarray) -> Value:
    """Create matrices with element ``sources[i, j]`` of the last axis at (i, j), 0 for -1."""
    shape = op.shape_of(data, least=1)
    zeros = op.emit("Expand", op.constant_like(0, data), [*shape[:-1], 1])
    extended = op.emit("Concat", data, zeros, axis=-1)
    table_of_places = np.where(sources < 0, shape[-1], sources)
    return op.emit("Gather", extended, op.constant(table_of_places, np.int64), axis=-1)


def _existing_line(op: Operation, matrices: Value, k: int) -> Value:
    """Extract diagonal ``k``; one just outside the matrix is empty, one beyond is an error."""
    op.require_rank(matrices, least=2)
    rows, columns = op.sizes_of(matrices)[-2:]
    if (rows is not None and k < -rows) or (columns is not None and k > columns):
        op.invalid(f"a matrix ({rows}, {columns}) has no diagonal {k}")
    return diagonal_line(op, matrices, k)


def on_diagonal(op: Operation, data: Value, k: int) -> Value:
    """Create square matrices with the last axis of ``data`` on diagonal ``k``, 0 elsewhere."""
    op.require_rank(data, least=1)
    zero = op.constant_like(0, data)
    widths = vector(op, 0, abs(k))
    longer = op.emit("Pad", data, widths, zero, [-1]) if k else data
    # Above the main diagonal the row is the position in the vector, below it the column.
    spread = op.emit("Unsqueeze", longer, [-1 if k >= 0 else -2])
    place = places(op, longer, op.rank_of(longer) - 1)
    return op.where(op.emit("Unsqueeze", place + k, [1]).equals(place), spread, zero)


@table.register("diag")
def diag(op: Operation) -> Value:
    """Extract diagonal ``k`` of ``axis1`` and ``axis2`` as the last axis.

    An input with one axis becomes diagonal ``k`` of a square matrix.
    """
    data, k = op.inputs[0], op.int("k", 0)
    rank = op.rank_of(data)
    if rank == 1:
        return on_diagonal(op, data, k)
    first, second = op.axis(data, op.int("axis1", 0)), op.axis(data, op.int("axis2", 1))
    if first == second:
        op.invalid("is the same axis as axis1", "axis2")
    others = [axis for axis in range(rank) if axis not in (first, second)]
    return _existing_line(op, op.emit("Transpose", data, perm=[*others, first, second]), k)


@table.register("_linalg_extractdiag", "linalg_extractdiag")
def extractdiag(op: Operation) -> Value:
    """Extract diagonal ``offset`` of each square matrix: (..., n, n) to (..., n - |offset|)."""
    return _existing_line(op, op.inputs[0], op.int("offset", 0))


@table.register("_linalg_makediag", "linalg_makediag")
def makediag(op: Operation) -> Value:
    """Create square matrices with (..., n) as diagonal ``offset``, 0 elsewhere."""
    data = op.inputs[0]
    return on_diagonal(op, data, op.int("offset", 0))


def _triangle(op: Operation, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the triangle that ``offset`` and ``lower`` select.

    MXNet orders a lower triangle row by row, an upper one column by column.
    """
    offset = op.int("offset", 0)
    lower = offset < 0 or (offset == 0 and op.bool("lower", True))
    if lower:
        return np.tril_indices(size, offset)
    columns, rows = np.tril_indices(size, -offset)
    return rows, columns


@table.register("_linalg_extracttrian", "linalg_extracttrian")
def extracttrian(op: Operation) -> Value:
    """Extract a triangle of each square matrix (..., n, n) as a vector.

    A lower triangle is ordered row by row, an upper one column by column. It ends at diagonal
    ``offset``: upper if that is positive, lower if negative; for 0 ``lower`` decides.
    """
    data = op.inputs[0]
    size = op.shape_of(data, least=1)[-1]
    rows, columns = _triangle(op, size)
    if not rows.size:
        op.invalid("leaves no element", "offset")
    return _gathered(op, data, rows * size + columns)


@table.register("_linalg_maketrian", "linalg_maketrian")
def maketrian(op: Operation) -> Value:
    """Create square matrices from triangles (..., n (n + 1) / 2), the inverse of `extracttrian`."""
    data = op.inputs[0]
    count = op.shape_of(data, least=1)[-1]
    side = int((np.sqrt(8 * count + 1) - 1) / 2)
    if side * (side + 1) // 2 != count:
        op.invalid(f"{count} elements fill no triangle")
    size = side + abs(op.int("offset", 0))
    sources = np.full((size, size), -1)
    sources[_triangle(op, size)] = np.arange(count)
    return _spread(op, data, sources)


@table.register("_linalg_sumlogdiag", "linalg_sumlogdiag")
def sumlogdiag(op: Operation) -> Value:
    """Sum the logarithms of the main diagonal of each matrix (..., n, n), shape (...)."""
    data = op.inputs[0]
    diagonal = _existing_line(op, data, 0)
    keepdims = int(op.rank_of(data) == 2)
    return op.emit("ReduceSum", op.emit("Log", diagonal), [-1], keepdims=keepdims)


SIZES_OF = "__sizes_of__"
"""Attribute of a creating operator: for each open size a pair of variable and axis, as JSON."""


def filled(op: Operation, number: Value, least: int = 1) -> Value:
    """Create an array of the attribute ``shape``, each element ``number``.

    A size below ``least``, by which MXNet means one that is inferred from other nodes, is that of
    an axis of a variable, as `SIZES_OF` says. In NumPy mode ``least`` is 0, and the shape may be
    empty. Raises `UnsupportedError` if nothing determines such a size.
    """
    shape = op.ints("shape", ())
    sizes = _created_sizes(op, shape, least)
    if not shape and least > 0:
        op.unsupported("leaves the shape to be inferred from other nodes", "shape")
    if all(size.constant is not None for size in sizes):
        return op.emit("Expand", number, concatenated(op, sizes))
    known = tuple(None if size.constant is None else int(size.constant[0]) for size in sizes)
    spec = TypeSpec(number.dtype, known)
    return op.emit("Expand", number, concatenated(op, sizes), outputs=1, types=[spec])[0]


def _created_sizes(op: Operation, shape: tuple[int, ...], least: int) -> list[Value]:
    """Return the sizes of a created array, (1,) each; see `filled`."""
    sources = iter(json.loads(op.string(SIZES_OF, "[]")))
    sizes = []
    for size in shape:
        source = None if size >= least else next(sources, None)
        if size < least and source is None:
            op.unsupported("leaves a size to be inferred, which no input determines", "shape")
        value = (
            vector(op, size) if source is None else extent(op, op.variable(source[0]), source[1])
        )
        sizes.append(value)
    return sizes


def _filled_with(number: int, least: int, op: Operation) -> Value:
    return filled(op, op.constant(number, element_type(op, np.float32)), least)


def _full(least: int, op: Operation) -> Value:
    return filled(op, number_of(op, "value", 0.0, element_type(op, np.float32)), least)


def _like(number: float, op: Operation) -> Value:
    data = op.inputs[0]
    return op.emit("Expand", op.constant_like(number, data), op.emit("Shape", data))


for _prefix, _least in (("", 1), ("_npi", 0)):
    table.register(f"{_prefix}_zeros")(partial(_filled_with, 0, _least))
    table.register(f"{_prefix}_ones")(partial(_filled_with, 1, _least))
    table.register(f"{_prefix}_full")(partial(_full, _least))


@table.register("_zeros_without_dtype")
def zeros_without_type(op: Operation) -> Value:
    """Create an array of zeros; ``dtype`` is MXNet's number of an element type."""
    code = op.int("dtype", -1)
    if code < 0:
        op.unsupported("leaves the element type to be inferred from other nodes", "dtype")
    return filled(op, op.constant(0, dtypes.from_code(code)))


table.register("zeros_like")(partial(_like, 0.0))
table.register("ones_like")(partial(_like, 1.0))


@table.register("_npi_full_like")
def full_like(op: Operation) -> Value:
    """Create an array of the input's shape, each element ``fill_value``."""
    data = op.inputs[0]
    number = number_of(op, "fill_value", 0.0, element_type(op, op.dtype_of(data)))
    return op.emit("Expand", number, op.emit("Shape", data))


def progression(op: Operation, places: Value, start: float, step: float, dtype: np.dtype) -> Value:
    """Compute start + step * places; start and step are first converted to the result's type."""
    working = np.dtype(np.float64 if is_real(dtype) else np.int64)
    if working == np.int64:
        start, step = int(start), int(step)
    numbers = op.cast(places, working)
    if step != 1:
        numbers = numbers * step
    if start != 0:
        numbers = numbers + start
    return op.cast(numbers, dtype)


def places_of(op: Operation, count: Value, repeat: int) -> Value:
    """Return 0, 1, 2, ... each ``repeat`` times, ``count`` elements in total; int64."""
    number = op.emit("Reshape", count, op.constant(np.zeros(0, np.int64)))
    if count.constant is not None:
        number = op.constant(count.constant[0], np.int64)
    zero, one = op.constant(0, np.int64), op.constant(1, np.int64)
    places = op.emit("Range", zero, number, one)
    return places if repeat == 1 else places / repeat


@table.register("_arange")
def arange(op: Operation) -> Value:
    """Count from ``start`` to ``stop`` (excluded) by ``step``, each number ``repeat`` times.

    Without ``stop`` the range is from 0 to ``start``; with ``infer_range`` it begins at ``start``
    and fills the shape that other nodes determine.
    """
    start, stop = op.float("start", 0.0), op.optional_float("stop")
    repeat = op.int("repeat", 1)
    if stop is None and op.bool("infer_range", False):
        return _filling_range(op, start, repeat)
    count, start, step = _counted(op, start, stop)
    if count <= 0 or repeat < 1:
        op.invalid("results in an empty range", "stop")
    places = places_of(op, vector(op, count * repeat), repeat)
    return progression(op, places, start, step, element_type(op, np.float32))


def _filling_range(op: Operation, start: float, repeat: int) -> Value:
    """Count from ``start`` by ``step`` through an array of the inferred shape."""
    shape = op.ints("shape", ())
    if not shape:
        op.unsupported("leaves the length to be inferred from other nodes", "infer_range")
    sizes = concatenated(op, _created_sizes(op, shape, 1))
    count = sizes if len(shape) == 1 else op.emit("ReduceProd", sizes)
    places = places_of(op, count, repeat)
    numbers = progression(op, places, start, op.float("step", 1.0), element_type(op, np.float32))
    return numbers if len(shape) == 1 else op.emit("Reshape", numbers, sizes)


@table.register("_npi_arange")
def npi_arange(op: Operation) -> Value:
    """Count from ``start`` to ``stop`` (excluded) by ``step``; from 0 without ``stop``."""
    start, stop = op.float("start"), op.optional_float("stop")
    if op.int("repeat", 1) != 1:
        op.unsupported("must be 1", "repeat")
    count, start, step = _counted(op, start, stop)
    places = places_of(op, vector(op, max(count, 0)), 1)
    return progression(op, places, start, step, element_type(op, np.float32))


def _counted(op: Operation, start: float, stop: float | None) -> tuple[int, float, float]:
    """Return the length of a range, its start and its step."""
    step = op.float("step", 1.0)
    if stop is None:
        start, stop = 0.0, start
    if step == 0 or not all(map(math.isfinite, (start, stop, step))):
        op.invalid("results in no finite range", "step")
    return math.ceil((stop - start) / step), start, step


@table.register("_linspace", "_npi_linspace")
def linspace(op: Operation) -> Value:
    """Space ``num`` numbers evenly from ``start`` to ``stop``, which ``endpoint`` includes.

    Integers are truncated.
    """
    dtype = element_type(op, np.float32)
    return op.cast(_spaced(op, dtype if is_real(dtype) else np.dtype(np.float64)), dtype)


@table.register("_npi_logspace")
def logspace(op: Operation) -> Value:
    """Raise ``base`` to ``num`` evenly spaced powers; integers are truncated last."""
    powers = _spaced(op, np.dtype(np.float64))
    return op.cast(op.float("base", 10.0) ** powers, element_type(op, np.float32))


def _spaced(op: Operation, dtype: np.dtype) -> Value:
    start, stop, count = op.float("start"), op.float("stop"), op.int("num")
    if count < 0:
        op.invalid("is negative", "num")
    gaps = count - 1 if op.bool("endpoint", True) else count
    step = (stop - start) / gaps if gaps > 0 else 0.0
    return progression(op, places_of(op, vector(op, count), 1), start, step, dtype)


@table.register("_contrib_arange_like", "_npx_arange_like")
def arange_like(op: Operation) -> Value:
    """Count ``start``, ``start + step``, ... in the shape of the input, or along its ``axis``.

    Each number is repeated ``repeat`` times without changing the length. The element type is the
    input's.
    """
    data, axis, repeat = op.inputs[0], op.optional_int("axis"), op.int("repeat", 1)
    if repeat < 1:
        op.invalid("is not positive", "repeat")
    if axis is None:
        axes = range(op.rank_of(data))
        count = _product(op, [extent(op, data, position) for position in axes])
    else:
        count = extent(op, data, op.axis(data, axis))
    start, step = op.float("start", 0.0), op.float("step", 1.0)
    line = progression(op, places_of(op, count, repeat), start, step, op.dtype_of(data))
    if axis is not None or op.rank_of(data) == 1:
        return line
    if data.known:
        return reshaped(op, line, op.shape_of(data))
    return op.emit("Reshape", line, op.emit("Shape", data))


def _product(op: Operation, sizes: list[Value]) -> Value:
    joined = concatenated(op, sizes)
    if joined.constant is not None:
        return vector(op, int(np.prod(joined.constant)))
    return op.emit("ReduceProd", joined, keepdims=1)


@table.register("_eye")
def eye(op: Operation) -> Value:
    """Create (N, M) with ones on the diagonal ``k``; M of at most 0 means N."""
    rows, columns, k = op.int("N"), op.int("M", 0), op.int("k", 0)
    if rows < 0:
        op.invalid("is negative", "N")
    dtype = element_type(op, np.float32)
    return op.cast(diagonal_mask(op, rows, columns if columns > 0 else rows, k), dtype)


def _sizes(op: Operation, name: str = "shape") -> tuple[int, ...]:
    sizes = op.ints(name, ())
    if any(size < 0 for size in sizes):
        op.unsupported("leaves a size open", name)
    return sizes


@table.register("_npi_eye")
def npi_eye(op: Operation) -> Value:
    """Create (N, M) with ones on the diagonal ``k``; M is N if it is not given."""
    rows, columns = op.int("N"), op.optional_int("M")
    columns = rows if columns is None else columns
    if min(rows, columns) < 0:
        op.invalid("is negative", "N")
    mask = diagonal_mask(op, rows, columns, op.int("k", 0))
    return op.cast(mask, element_type(op, np.float32))


@table.register("_npi_identity")
def identity(op: Operation) -> Value:
    """Create an array of ``shape`` with ones on the main diagonal.

    For other shapes than squares MXNet takes the first size n for the length of the rows, too: n
    ones, each n + 1 places after the one before, of which those beyond the array are left out.
    """
    sizes = _sizes(op)
    dtype = element_type(op, np.float32)
    if len(sizes) == 2 and sizes[0] == sizes[1]:
        return op.cast(diagonal_mask(op, *sizes, 0), dtype)
    if not sizes:
        op.invalid("must have at least one size", "shape")
    count = math.prod(sizes)
    op.affordable(count)
    places = np.arange(sizes[0]) * (sizes[0] + 1)
    flat = np.zeros(count, dtype)
    flat[places[places < count]] = 1
    return op.constant(flat.reshape(sizes))


@table.register("_npi_indices")
def indices(op: Operation) -> Value:
    """Return the position of each element of an array of ``dimensions``: (n, d0, d1, ...)."""
    sizes = _sizes(op, "dimensions")
    dtype = element_type(op, np.int32)
    if 0 in (*sizes, len(sizes)):
        return op.constant(np.zeros((len(sizes), *sizes), dtype))
    parts = []
    for axis, size in enumerate(sizes):
        line = op.emit("Range", *(op.constant(number, np.int64) for number in (0, size, 1)))
        turned = [1, *(size if own == axis else 1 for own in range(len(sizes)))]
        column = op.emit("Reshape", line, op.constant(turned, np.int64), allowzero=1)
        parts.append(op.emit("Expand", column, [1, *sizes]))
    return op.cast(op.emit("Concat", *parts, axis=0), dtype)


_WINDOWS = {
    "_npi_hanning": (0.5, 0.5, 0.0),
    "_npi_hamming": (0.54, 0.46, 0.0),
    "_npi_blackman": (0.42, 0.5, 0.08),
}
"""The weights of 1, of -cos(t) and of cos(2 t) for t from 0 to 2 pi."""


def _window(weights: tuple[float, float, float], op: Operation) -> Value:
    count = op.optional_int("M")
    dtype = element_type(op, np.float32)
    if count is None:
        op.invalid("is required", "M")
    if count < 0:
        op.invalid("is negative", "M")
    if count == 1:
        return op.constant(np.ones(1, dtype))
    if not is_real(dtype):
        op.affordable(count)
        return op.constant(np.zeros(count, dtype))  # MXNet converts the weights first
    double = np.dtype(np.float64)
    step = 2 * math.pi / (count - 1) if count else 0.0
    angle = progression(op, places_of(op, vector(op, count), 1), 0.0, step, double)
    constant, first, second = weights
    result = constant - first * op.emit("Cos", angle)
    if second:
        result = result + second * op.emit("Cos", angle + angle)
    return op.cast(result, dtype)


for _name, _weights in _WINDOWS.items():
    table.register(_name)(partial(_window, _weights))
