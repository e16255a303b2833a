"""Shapes, sizes and contents of values, and tables of rules about operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol, TypeVar

import numpy as np

from passlib._core import EditableValue

Monomial = tuple[str, ...]
"""Names in order, each as often as its power; ``()`` for the number itself."""


class Size:
    """A sum of products of names, which stand for non-negative integers.

    Arithmetic returns an `int` if no name remains.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = tuple(sorted(terms.items()))

    @classmethod
    def named(cls, name: str) -> Size:
        """Return the dimension of a name."""
        return cls({(name,): 1})

    def __add__(self, other: Quantity) -> Quantity:
        total = dict(self.terms)
        for monomial, factor in _terms(other):
            total[monomial] = total.get(monomial, 0) + factor
        return _made(total)

    __radd__ = __add__

    def __neg__(self) -> Quantity:
        return self * -1

    def __sub__(self, other: Quantity) -> Quantity:
        return self + other * -1

    def __rsub__(self, other: Quantity) -> Quantity:
        return self * -1 + other

    def __mul__(self, other: Quantity) -> Quantity:
        total: dict[Monomial, int] = {}
        for left, factor in self.terms:
            for right, other_factor in _terms(other):
                monomial = tuple(sorted(left + right))
                total[monomial] = total.get(monomial, 0) + factor * other_factor
        return _made(total)

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Size) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __str__(self) -> str:
        return " + ".join("*".join((str(factor), *names)) for names, factor in self.terms)

    __repr__ = __str__


Quantity = int | Size


def _terms(value: Quantity) -> tuple[tuple[Monomial, int], ...]:
    return value.terms if isinstance(value, Size) else (((), int(value)),)


def _made(terms: Mapping[Monomial, int]) -> Quantity:
    left = {monomial: factor for monomial, factor in terms.items() if factor}
    if not left:
        return 0
    return left[()] if left.keys() == {()} else Size(left)


def product(sizes: tuple[Quantity, ...] | list[Quantity]) -> Quantity:
    """Return the product of dimensions."""
    total: Quantity = 1
    for size in sizes:
        total = total * size
    return total


def quotient(value: Quantity, divisor: Quantity) -> Quantity | None:
    """Return the quotient if the division is exact for all values of the names, or None.

    The divisor is a positive number or a product of names, which the caller knows to be nonzero.
    """
    if divisor == 0:
        return None
    terms = _terms(divisor)
    if len(terms) != 1:
        return 1 if value == divisor else None
    names, number = terms[0]
    found: dict[Monomial, int] = {}
    for monomial, factor in _terms(value):
        rest = list(monomial)
        for name in names:
            if name not in rest:
                return None
            rest.remove(name)
        if factor % number:
            return None
        found[tuple(rest)] = factor // number
    return _made(found)


def towards_zero(left: Quantity, right: Quantity) -> Quantity | None:
    """Return a quotient rounded towards zero, as ONNX divides integers; None if unknown."""
    if not isinstance(right, int) or right == 0:
        return None
    if isinstance(left, int):
        whole = abs(left) // abs(right)
        return whole if (left < 0) == (right < 0) else -whole
    exact = quotient(left, right) if right > 0 else None
    if exact is not None:
        return exact
    if right < 0 or not at_least(left, 0):
        return None
    return Size.named(f"({left})/{right}")


def at_least(value: Quantity, least: int) -> bool:
    """Whether a value has this lower bound for all values of the names."""
    rest = _terms(value - least)
    return all(factor >= 0 for _, factor in rest)


def differ(left: Quantity, right: Quantity) -> bool:
    """Whether two values differ for all values of the names."""
    return at_least(left - right, 1) or at_least(right - left, 1)


Content = np.ndarray[Any, np.dtype[np.object_]]
"""An array of `int` and `Size`."""


@dataclass(frozen=True)
class Ratio:
    """A quotient of dimensions in floating point.

    Attributes
    ----------
    divisor : int
        Positive; 1 if the quotient is an integer for all values of the names.
    """

    number: Quantity
    divisor: int

    @property
    def is_exact(self) -> bool:
        """Whether floating point represents the quotient exactly."""
        return self.divisor & (self.divisor - 1) == 0


Reals = np.ndarray[Any, np.dtype[np.object_]]
"""An array of `Ratio`."""


class Known(Protocol):
    """Known facts about the values of a graph."""

    def shape(self, value: EditableValue | None) -> tuple[Quantity, ...] | None:
        """Return the dimensions of a value; None for an unknown rank."""

    def is_positive(self, size: Quantity) -> bool:
        """Whether a dimension is positive whenever the model runs."""

    def content(self, value: EditableValue | None) -> Content | None:
        """Return the elements of a small integer tensor, or None."""

    def real(self, value: EditableValue | None) -> Reals | None:
        """Return the elements of a small floating-point tensor, or None."""


R = TypeVar("R", bound=Callable[..., Any])

_UNEXPECTED: Final = (ArithmeticError, LookupError, TypeError, ValueError)


def registering(rules: dict[str, R]) -> Callable[..., Callable[[R], R]]:
    """Return a decorator that registers a rule for operators.

    A rule that raises an error on an invalid node returns None: such a node may never run.
    """

    def for_operators(*names: str) -> Callable[[R], R]:
        def register(rule: R) -> R:
            @wraps(rule)
            def cautious(*arguments: Any) -> Any:
                try:
                    return rule(*arguments)
                except _UNEXPECTED:
                    return None

            made: Any = cautious
            rules.update(dict.fromkeys(names, made))
            return rule

        return register

    return for_operators
