"""Products of arrays as NumPy defines them: dot, matmul, tensordot, Einstein summation."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import concatenated, extent, reshaped, reshaped_to, vector
from passlib.lowering.extents import dot as summed
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.creation import diagonal_line

_MOST_COEFFICIENTS = 256


@table.register("_npi_polyval")
def polyval(op: Operation) -> Value:
    """Evaluate the polynomial with coefficients ``p``, the highest first, at each element."""
    coefficients, x = op.operands(2)
    (count,) = op.shape_of(coefficients, 1)
    if count > _MOST_COEFFICIENTS:
        op.unsupported(f"is unrolled for at most {_MOST_COEFFICIENTS} coefficients, not {count}")
    result = x * 0
    for place in range(count):
        result = result * x + op.emit("Gather", coefficients, op.constant(place), axis=0)
    return result


def transposed(op: Operation, value: Value) -> Value:
    """Transpose each matrix: exchange the last two axes."""
    op.require_rank(value, least=2)
    order = list(range(op.rank_of(value)))
    order[-2:] = reversed(order[-2:])
    return op.emit("Transpose", value, perm=order)


def _scaled(op: Operation, value: Value, name: str) -> Value:
    factor = op.float(name, 1.0)
    return value if factor == 1 else value * factor


table.register("dot")(summed)


@table.register("batch_dot", "_npx_batch_dot")
def batch_dot(op: Operation) -> Value:
    """Multiply each pair of matrices (n, r, k) and (n, k, c), either of them transposed."""
    left, right = op.operands(2)
    return _product(op, left, right)


def _product(op: Operation, left: Value, right: Value) -> Value:
    if op.bool("transpose_a", False):
        left = transposed(op, left)
    if op.bool("transpose_b", False):
        right = transposed(op, right)
    return left @ right


def _rows_to(op: Operation, value: Value, source: int, target: int) -> Value:
    """Move one axis to another position."""
    rank = op.rank_of(value)
    source, target = op.axis(value, source), op.axis(value, target)
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return value if source == target else op.emit("Transpose", value, perm=order)


def _general_product(has_sum: bool, op: Operation) -> Value:
    """Compute ``alpha`` A B (+ ``beta`` C); rows are in ``axis``, columns in the last axis."""
    axis = op.int("axis", -2)
    operands = op.operands(3 if has_sum else 2)
    left, right, *summand = (_rows_to(op, value, axis, -2) for value in operands)
    result = _scaled(op, _product(op, left, right), "alpha")
    if has_sum:
        result = result + _scaled(op, summand[0], "beta")
    return _rows_to(op, result, -2, axis)


table.register("_linalg_gemm", "linalg_gemm")(partial(_general_product, True))
table.register("_linalg_gemm2", "linalg_gemm2")(partial(_general_product, False))


@table.register("_linalg_syrk", "linalg_syrk")
def syrk(op: Operation) -> Value:
    """Compute ``alpha`` A A', or with ``transpose`` ``alpha`` A' A."""
    matrix = op.inputs[0]
    pair = (matrix, transposed(op, matrix))
    if op.bool("transpose", False):
        pair = pair[::-1]
    return _scaled(op, op.emit("MatMul", *pair), "alpha")


@table.register("_linalg_trmm", "linalg_trmm")
def trmm(op: Operation) -> Value:
    """Compute ``alpha`` A B for a triangular A, or with ``rightside`` ``alpha`` B A.

    Elements of A outside the triangle are ignored.
    """
    triangle = op.emit("Trilu", op.inputs[0], upper=int(not op.bool("lower", True)))
    if op.bool("transpose", False):
        triangle = transposed(op, triangle)
    pair = (triangle, op.inputs[1])
    if op.bool("rightside", False):
        pair = pair[::-1]
    return _scaled(op, op.emit("MatMul", *pair), "alpha")


@table.register("khatri_rao")
def khatri_rao(op: Operation) -> Value:
    """Compute the columnwise outer product: matrices (m_i, n) to (m_1 m_2 ..., n)."""
    for matrix in op.inputs:
        op.require_rank(matrix, 2)
    result = op.inputs[0]
    for matrix in op.inputs[1:]:
        product = op.emit("Unsqueeze", result, [1]) * op.emit("Unsqueeze", matrix, [0])
        result = reshaped(op, product, [(0, 1), (2,)])
    return result


def contracted(
    op: Operation, a: Value, b: Value, a_axes: Sequence[int], b_axes: Sequence[int]
) -> Value:
    """Sum products over pairs of axes; the free axes of a come before those of b."""
    if len(a_axes) != len(b_axes):
        raise Misfit(f"{len(a_axes)} axes are summed with {len(b_axes)}")
    summed = [op.axis(a, axis) for axis in a_axes]
    others = [op.axis(b, axis) for axis in b_axes]
    if len({*summed}) != len(summed) or len({*others}) != len(others):
        raise Misfit("an axis is summed twice")
    a_free = [axis for axis in range(op.rank_of(a)) if axis not in summed]
    b_free = [axis for axis in range(op.rank_of(b)) if axis not in others]
    sizes = [extent(op, a, axis) for axis in a_free] + [extent(op, b, axis) for axis in b_free]
    rows = _matrix(op, a, [*a_free, *summed], len(a_free))
    columns = _matrix(op, b, [*others, *b_free], len(others))
    if rows.shape is not None and rows.shape[1] == 0:
        return op.emit("Expand", op.constant_like(0, a), concatenated(op, sizes))
    return reshaped_to(op, rows @ columns, sizes)


def _matrix(op: Operation, value: Value, order: list[int], split: int) -> Value:
    """Transpose to an order of axes and merge those before and after ``split``."""
    if order != sorted(order):
        value = op.emit("Transpose", value, perm=order)
    axes = range(len(order))
    return reshaped(op, value, [tuple(axes[:split]), tuple(axes[split:])])


@table.register("_np_dot")
def dot(op: Operation) -> Value:
    """Sum over the last axis of the first input and the last but one of the second.

    An input without axes multiplies the other.
    """
    a, b = op.operands(2)
    if not op.rank_of(a) or not op.rank_of(b):
        return a * b
    return contracted(op, a, b, [-1], [-min(op.rank_of(b), 2)])


@table.register("_npi_matmul")
def matmul(op: Operation) -> Value:
    """Multiply matrices in the last two axes; the others broadcast, a vector is a row or column."""
    a, b = op.operands(2)
    for value in (a, b):
        op.require_rank(value, least=1)
    if op.rank_of(a) == 1 or op.rank_of(b) <= 2:
        if op.rank_of(a) > 1 or op.rank_of(b) <= 2:
            return contracted(op, a, b, [-1], [-min(op.rank_of(b), 2)])
        a = op.emit("Unsqueeze", a, [0])
        return op.emit("Squeeze", a @ b, [-2])
    return a @ b


@table.register("_npi_tensordot")
def tensordot(op: Operation) -> Value:
    """Sum over the axes ``a_axes_summed`` and ``b_axes_summed``, pair by pair."""
    a, b = op.operands(2)
    return contracted(op, a, b, op.ints("a_axes_summed"), op.ints("b_axes_summed"))


@table.register("_npi_tensordot_int_axes")
def tensordot_of_last(op: Operation) -> Value:
    """Sum over the last ``axes`` axes of the first input and the first ones of the second."""
    a, b = op.operands(2)
    count = op.int("axes")
    if not 0 <= count <= min(op.rank_of(a), op.rank_of(b)):
        op.invalid("is not a number of axes that both inputs have", "axes")
    rank = op.rank_of(a)
    return contracted(op, a, b, range(rank - count, rank), range(count))


_LONGEST = 10_000


class Subscripts(NamedTuple):
    """The axes of each operand and of the result.

    Attributes
    ----------
    operands : list of list of (str or int)
        A letter for each axis; axes of an ellipsis are numbers counted from the right, from -1.
    """

    operands: list[list[str | int]]
    result: list[str | int]


def parse_subscripts(text: str, ranks: Sequence[int]) -> Subscripts:
    """Read subscripts such as ``ij,jk->ik`` or ``...i,i`` for operands of these ranks.

    Without an arrow the result has the axes of the ellipsis and the letters that occur once, in
    alphabetical order. Raises `ValueError` if the text is no such expression, or does not fit the
    ranks.
    """
    if len(text) > _LONGEST:
        raise ValueError(f"has {len(text)} characters")
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"has {len(terms)} terms for {len(ranks)} operands")
    operands = [_axes(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    widest = max((-min(_dots(axes), default=0) for axes in operands), default=0)
    dots: list[str | int] = list(range(-widest, 0))
    counts = Counter(axis for axes in operands for axis in axes if isinstance(axis, str))
    if not arrow:
        return Subscripts(operands, [*dots, *sorted(a for a, n in counts.items() if n == 1)])
    result = _axes(right, len(right.replace("...", "")) + (widest if "..." in right else 0))
    letters = [axis for axis in result if isinstance(axis, str)]
    if len({*letters}) != len(letters) or not {*letters} <= counts.keys():
        raise ValueError(f"has a result {right!r} that repeats a letter or invents one")
    return Subscripts(operands, result)


def _dots(axes: Sequence[str | int]) -> list[int]:
    return [axis for axis in axes if isinstance(axis, int)]


def _axes(term: str, rank: int) -> list[str | int]:
    before, dots, after = term.partition("...")
    letters = before + after
    if any(letter not in string.ascii_letters for letter in letters):
        raise ValueError(f"has a term {term!r} that is neither letters nor one ellipsis")
    rest = rank - len(letters)
    if rest < 0 or (rest and not dots):
        raise ValueError(f"has a term {term!r} for an operand with {rank} axes")
    return [*before, *range(-rest, 0), *after]


def _without_repeats(
    op: Operation, value: Value, axes: list[str | int]
) -> tuple[Value, list[str | int]]:
    """Take the diagonal of axes that share a letter."""
    axes = list(axes)
    while len({*axes}) != len(axes):
        name = next(axis for axis, count in Counter(axes).items() if count > 1)
        first = axes.index(name)
        second = axes.index(name, first + 1)
        others = [axis for axis in range(len(axes)) if axis not in (first, second)]
        value = op.emit("Transpose", value, perm=[*others, first, second])
        rows, columns = op.sizes_of(value)[-2:]
        if rows != columns and None not in (rows, columns):
            raise Misfit(f"subscript {name!r} stands for sizes {rows} and {columns}")
        value = diagonal_line(op, value, 0)
        axes = [*(axes[axis] for axis in others), name]
    return value, axes


def _sizes(
    op: Operation, values: Sequence[Value], terms: Sequence[list[str | int]]
) -> dict[str | int, int | None]:
    """Return the size of each axis; sizes of 1 broadcast."""
    sizes: dict[str | int, int | None] = {}
    for value, axes in zip(values, terms, strict=True):
        op.rank_of(value)
        for axis, size in zip(axes, value.shape or (), strict=True):
            old = sizes.get(axis, 1)
            if old == 1:
                sizes[axis] = size
            elif size not in (1, None, old) and old is not None:
                raise Misfit(f"subscript {axis!r} stands for sizes {old} and {size}")
    return sizes


@table.register("_npi_einsum")
def einsum(op: Operation) -> Value:
    """Sum products over the axes that ``subscripts`` names alike and omits from the result."""
    try:
        subscripts = parse_subscripts(
            op.string("subscripts", ""), [op.rank_of(value) for value in op.inputs]
        )
    except ValueError as error:
        op.invalid(str(error), "subscripts")
    pairs = [
        _without_repeats(op, value, axes)
        for value, axes in zip(op.inputs, subscripts.operands, strict=True)
    ]
    values, terms = [value for value, _ in pairs], [axes for _, axes in pairs]
    sizes = _sizes(op, values, terms)
    dtype = op.dtype_of(values[0])
    if 0 in sizes.values():
        shape = vector(op, *(sizes[axis] or 0 for axis in subscripts.result))
        return op.emit("Expand", op.constant_like(0, values[0]), shape)
    working = dtype if dtype.itemsize > 2 or dtype.kind == "f" else np.dtype(np.int32)
    factors: list[Value] = []
    arrays: list[Value] = []
    kept: list[list[str | int]] = []
    for value, axes in zip(values, terms, strict=True):
        ones = [
            place
            for place, axis in enumerate(axes)
            if op.sizes_of(value)[place] == 1 and sizes[axis] != 1
        ]
        narrow = op.emit("Squeeze", value, ones) if ones else value
        left = [axis for place, axis in enumerate(axes) if place not in ones]
        narrow = op.cast(narrow, working)
        if left:
            arrays.append(narrow)
            kept.append(left)
        else:
            factors.append(narrow)
    if arrays:
        factors.insert(0, _summed(op, arrays, kept, subscripts.result))
    total = factors[0]
    for factor in factors[1:]:
        total = total * factor
    return op.cast(total, dtype)


def _summed(
    op: Operation, arrays: list[Value], terms: list[list[str | int]], result: list[str | int]
) -> Value:
    """Emit the summation with one letter for each axis."""
    names: dict[str | int, str] = {}
    for axis in (axis for axes in terms for axis in axes):
        if axis not in names:
            if len(names) == len(string.ascii_letters):
                op.unsupported("has more axes than there are letters", "subscripts")
            names[axis] = string.ascii_letters[len(names)]
    left = ",".join("".join(names[axis] for axis in axes) for axes in terms)
    right = "".join(names[axis] for axis in result)
    return op.emit("Einsum", *arrays, equation=f"{left}->{right}")
