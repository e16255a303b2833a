"""The operators of Python on symbols: which MXNet operator each one is."""

from __future__ import annotations

from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib import compose
from passlib.functions import operator

if TYPE_CHECKING:
    from passlib.symbol import Symbol

__all__ = [
    "add",
    "divide",
    "equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "modulo",
    "multiply",
    "negative",
    "not_equal",
    "power",
    "subtract",
]


def _apply(sign: str, lhs: Any, rhs: Any, both: str, scalar: str, reverse: str) -> Symbol:
    symbol = compose.symbol_class()
    if isinstance(lhs, symbol):
        if isinstance(rhs, symbol):
            return operator(both, "_internal")(lhs, rhs)
        if isinstance(rhs, (Number, np.generic)):
            return operator(scalar, "_internal")(lhs, scalar=rhs)
    elif isinstance(rhs, symbol) and isinstance(lhs, (Number, np.generic)):
        return operator(reverse, "_internal")(rhs, scalar=lhs)
    message = (
        f"unsupported operands for {sign}: {type(lhs).__name__!r} and {type(rhs).__name__!r}; "
        f"a symbol goes with a symbol or a number"
    )
    raise TypeError(message)


def add(lhs: Any, rhs: Any) -> Symbol:
    """``lhs + rhs`` of symbols of one shape, or a symbol and a number."""
    return _apply("+", lhs, rhs, "_Plus", "_PlusScalar", "_PlusScalar")


def subtract(lhs: Any, rhs: Any) -> Symbol:
    """``lhs - rhs``; operands as in `add`."""
    return _apply("-", lhs, rhs, "_Minus", "_MinusScalar", "_RMinusScalar")


def multiply(lhs: Any, rhs: Any) -> Symbol:
    """``lhs * rhs``, element by element; operands as in `add`."""
    return _apply("*", lhs, rhs, "_Mul", "_MulScalar", "_MulScalar")


def divide(lhs: Any, rhs: Any) -> Symbol:
    """``lhs / rhs``, element by element; operands as in `add`."""
    return _apply("/", lhs, rhs, "_Div", "_DivScalar", "_RDivScalar")


def modulo(lhs: Any, rhs: Any) -> Symbol:
    """``lhs % rhs``; operands as in `add`."""
    return _apply("%", lhs, rhs, "_Mod", "_ModScalar", "_RModScalar")


def power(lhs: Any, rhs: Any) -> Symbol:
    """``lhs ** rhs``; operands as in `add`."""
    return _apply("**", lhs, rhs, "_Power", "_PowerScalar", "_rpower_scalar")


def negative(symbol: Symbol) -> Symbol:
    """``-symbol``: MXNet multiplies by -1.0."""
    return multiply(symbol, -1.0)


def equal(lhs: Any, rhs: Any) -> Symbol:
    """``lhs == rhs`` as 0 or 1, element by element; operands as in `add`."""
    return _apply("==", lhs, rhs, "_equal", "_equal_scalar", "_equal_scalar")


def not_equal(lhs: Any, rhs: Any) -> Symbol:
    """``lhs != rhs`` as 0 or 1; operands as in `add`."""
    return _apply("!=", lhs, rhs, "_not_equal", "_not_equal_scalar", "_not_equal_scalar")


def greater(lhs: Any, rhs: Any) -> Symbol:
    """``lhs > rhs`` as 0 or 1; operands as in `add`."""
    return _apply(">", lhs, rhs, "_greater", "_greater_scalar", "_lesser_scalar")


def greater_equal(lhs: Any, rhs: Any) -> Symbol:
    """``lhs >= rhs`` as 0 or 1; operands as in `add`."""
    names = ("_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar")
    return _apply(">=", lhs, rhs, *names)


def lesser(lhs: Any, rhs: Any) -> Symbol:
    """``lhs < rhs`` as 0 or 1; operands as in `add`."""
    return _apply("<", lhs, rhs, "_lesser", "_lesser_scalar", "_greater_scalar")


def lesser_equal(lhs: Any, rhs: Any) -> Symbol:
    """``lhs <= rhs`` as 0 or 1; operands as in `add`."""
    names = ("_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar")
    return _apply("<=", lhs, rhs, *names)
