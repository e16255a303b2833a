"""Rules for dimensions that pass through floating point, as exporters divide and scale them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from passlib._core import EditableNode
from passlib.passes.standard.facts.known import (
    Content,
    Known,
    Quantity,
    Ratio,
    Reals,
    at_least,
    quotient,
    registering,
    towards_zero,
)
from passlib.passes.standard.facts.nodes import given, integer, integers, is_old_broadcast

_LARGEST = 1 << 24
"""Up to here float32 has every whole number, and a quotient rounds to no other whole number."""

_LARGEST_FACTOR = 1 << 12

_REAL_CODES = (1, 11)


Rule = Callable[[EditableNode, Known], "Reals | None"]

real_rules: dict[str, Rule] = {}
_rule = registering(real_rules)


def elements(array: np.ndarray[Any, Any]) -> Reals | None:
    """Return the elements of a constant as ratios, if float32 is exact for them."""
    if not np.isfinite(array).all():
        return None
    return _mapped(array, lambda item: _reduced(*Fraction(float(item)).as_integer_ratio()))


def without_fraction(node: EditableNode, known: Known) -> Content | None:
    """Return the result of a Cast of floating-point dimensions to int64."""
    source = known.real(node.inputs[0])
    if source is None or integer(node, "to", 0) != 7:
        return None
    return _mapped(source, lambda item: towards_zero(item.number, item.divisor))


def _mapped(source: np.ndarray[Any, Any], compute: Callable[[Any], Any]) -> Reals | None:
    """Apply a function to each element; return None if a result is None."""
    found = [compute(item) for item in source.flat]
    if any(item is None for item in found):
        return None
    made: Reals = np.empty(len(found), object)
    made[:] = found
    shaped: Reals = made.reshape(source.shape)
    return shaped


def _reduced(number: Quantity, divisor: int) -> Ratio | None:
    """Return a quotient that float32 represents, or rounds to no other integer."""
    if isinstance(number, int):
        part = Fraction(number, divisor)
        limited = abs(part.numerator) <= _LARGEST and part.denominator <= _LARGEST
        return Ratio(part.numerator, part.denominator) if limited else None
    # A product of open sizes may well be above the largest number, a small multiple hardly.
    if divisor > _LARGEST or any(len(names) > 1 for names, _ in number.terms):
        return None
    if sum(abs(factor) for _, factor in number.terms) > _LARGEST_FACTOR:
        return None
    exact = quotient(number, divisor)
    return Ratio(number, divisor) if exact is None else Ratio(exact, 1)


@_rule("Cast")
def _cast(node: EditableNode, known: Known) -> Reals | None:
    if integer(node, "to", 0) not in _REAL_CODES:
        return None
    whole = known.content(node.inputs[0])
    if whole is None:
        return None
    return _mapped(whole, lambda item: _reduced(item, 1))


Binary = Callable[[Ratio, Ratio], "Ratio | None"]


def _times(left: Ratio, right: Ratio) -> Ratio | None:
    return _reduced(left.number * right.number, left.divisor * right.divisor)


def _over(left: Ratio, right: Ratio) -> Ratio | None:
    divisor = right.number
    if not isinstance(divisor, int) or divisor <= 0:
        return None
    return _reduced(left.number * right.divisor, left.divisor * divisor)


def _plus(left: Ratio, right: Ratio) -> Ratio | None:
    total = left.number * right.divisor + right.number * left.divisor
    return _reduced(total, left.divisor * right.divisor)


_BINARY: dict[str, Binary] = {
    "Mul": _times,
    "Div": _over,
    "Add": _plus,
    "Sub": lambda left, right: _plus(left, Ratio(right.number * -1, right.divisor)),
}


@_rule(*_BINARY)
def _binary(node: EditableNode, known: Known) -> Reals | None:
    left, right = known.real(node.inputs[0]), known.real(node.inputs[1])
    if left is None or right is None or is_old_broadcast(node):
        return None
    try:
        pairs = np.broadcast(left, right)
    except ValueError:
        return None
    found = [_exactly(_BINARY[node.op], one, other) for one, other in pairs]
    made: Reals = np.empty(len(found), object)
    made[:] = found
    return None if None in found else made.reshape(pairs.shape)


def _exactly(compute: Binary, left: Ratio, right: Ratio) -> Ratio | None:
    return compute(left, right) if left.is_exact and right.is_exact else None


@_rule("Floor", "Ceil")
def _round(node: EditableNode, known: Known) -> Reals | None:
    source = known.real(node.inputs[0])
    compute = _floor if node.op == "Floor" else _ceiling
    return None if source is None else _mapped(source, compute)


def _floor(item: Ratio) -> Ratio | None:
    if not at_least(item.number, 0):
        return None
    whole = towards_zero(item.number, item.divisor)
    return None if whole is None else _reduced(whole, 1)


def _ceiling(item: Ratio) -> Ratio | None:
    if item.divisor == 1:
        return item
    if not isinstance(item.number, int):
        return None
    return _reduced(math.ceil(Fraction(item.number, item.divisor)), 1)


@_rule("Unsqueeze", "Squeeze", "Reshape", "Identity")
def _same_elements(node: EditableNode, known: Known) -> Reals | None:
    source, shape = known.real(node.inputs[0]), known.shape(node.outputs[0])
    if source is None or shape is None or not all(isinstance(size, int) for size in shape):
        return None
    sizes = tuple(int(size) for size in shape if isinstance(size, int))
    return source.reshape(sizes)


@_rule("Concat")
def _concat(node: EditableNode, known: Known) -> Reals | None:
    parts = [known.real(value) for value in node.inputs]
    if any(part is None or part.ndim != 1 for part in parts):
        return None
    return np.concatenate([part for part in parts if part is not None])


@_rule("Slice")
def _slice(node: EditableNode, known: Known) -> Reals | None:
    source = known.real(node.inputs[0])
    bounds = [known.content(given(node, number)) for number in (1, 2)]
    if source is None or source.ndim != 1 or given(node, 4) is not None:
        return None
    if integers(node, "starts") or any(b is None or b.size != 1 for b in bounds):
        return None
    start, end = (b.flat[0] for b in bounds if b is not None)
    if not isinstance(start, int) or not isinstance(end, int) or start < 0 or end < 0:
        return None
    return source[start:end]
