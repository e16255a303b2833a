"""Sizes that a model leaves open, as polynomials of names with whole coefficients."""

from __future__ import annotations

from collections.abc import Mapping

Monomial = tuple[str, ...]
"""Names in order, each as often as its power; ``()`` for the number itself."""


class Size:
    """A sum of products of names. Every name stands for a whole number that is at least 0.

    Arithmetic returns an `int` where no name is left.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = tuple(sorted(terms.items()))

    @classmethod
    def named(cls, name: str) -> Size:
        """Return the size of a name."""
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
    """Return the product, 1 for none."""
    total: Quantity = 1
    for size in sizes:
        total = total * size
    return total


def quotient(value: Quantity, divisor: Quantity) -> Quantity | None:
    """Return the quotient if the division leaves no rest whatever the names stand for.

    Parameters
    ----------
    value : int or Size
    divisor : int or Size
        A number above 0 or a product of names. That none of these is 0 is up to the caller.
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
    """Return a quotient without its fraction, as ONNX divides whole numbers; None if unknown."""
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
    """Whether a value is at least this number whatever the names stand for."""
    rest = _terms(value - least)
    return all(factor >= 0 for _, factor in rest)


def differ(left: Quantity, right: Quantity) -> bool:
    """Whether two values differ whatever the names stand for."""
    return at_least(left - right, 1) or at_least(right - left, 1)
