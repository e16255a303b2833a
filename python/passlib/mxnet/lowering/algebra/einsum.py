"""Einstein summation: subscripts read in full, diagonals and broadcasting resolved first."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from passlib.lowering import Operation, Value
from passlib.lowering.extents import vector
from passlib.lowering.types import Misfit
from passlib.mxnet.lowering.table import table
from passlib.mxnet.lowering.tensors.diagonal import diagonal_line

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
    alphabetical order.

    Raises
    ------
    ValueError
        The text is no such expression, or does not fit the ranks.
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
