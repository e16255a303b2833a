"""Python's operators on symbols, and the MXNet operator that each one applies."""

from __future__ import annotations

from numbers import Number
from typing import Any, NamedTuple, TypeVar

import numpy as np

from passlib.graph.plain import PlainGraph
from passlib.mxnet.schema.namespaces import INTERNAL
from passlib.mxnet.symbol.composition.composable import Composable
from passlib.mxnet.symbol.composition.functions import operator

_S = TypeVar("_S", bound="Arithmetic")


class _Names(NamedTuple):
    """MXNet's operators for one operator of Python."""

    both: str
    """Of two symbols."""
    scalar: str
    """Of a symbol and a number."""
    reverse: str
    """Of a number and a symbol."""


_NAMES = {
    "+": _Names("_Plus", "_PlusScalar", "_PlusScalar"),
    "-": _Names("_Minus", "_MinusScalar", "_RMinusScalar"),
    "*": _Names("_Mul", "_MulScalar", "_MulScalar"),
    "/": _Names("_Div", "_DivScalar", "_RDivScalar"),
    "%": _Names("_Mod", "_ModScalar", "_RModScalar"),
    "**": _Names("_Power", "_PowerScalar", "_rpower_scalar"),
    "==": _Names("_equal", "_equal_scalar", "_equal_scalar"),
    "!=": _Names("_not_equal", "_not_equal_scalar", "_not_equal_scalar"),
    ">": _Names("_greater", "_greater_scalar", "_lesser_scalar"),
    ">=": _Names("_greater_equal", "_greater_equal_scalar", "_lesser_equal_scalar"),
    "<": _Names("_lesser", "_lesser_scalar", "_greater_scalar"),
    "<=": _Names("_lesser_equal", "_lesser_equal_scalar", "_greater_equal_scalar"),
}


class Arithmetic(Composable):
    """A graph to which Python's operators apply MXNet's, element by element.

    The other operand is a graph whose output has the same shape, or a number. Comparisons
    compute 0 or 1.

    Raises
    ------
    TypeError
        The other operand is something else, or one of the graphs is not of the MXNet dialect.
    """

    __slots__ = ()

    def _apply(self: _S, sign: str, other: Any, *, swapped: bool = False) -> _S:
        names = _NAMES[sign]
        if self.dialect != "mxnet" or getattr(other, "dialect", "mxnet") != "mxnet":
            raise TypeError(_other_dialect(sign, self, other))
        if isinstance(other, PlainGraph):
            operands = (other, self) if swapped else (self, other)
            return operator(names.both, INTERNAL, type(self))(*operands)
        if isinstance(other, (Number, np.generic)):
            name = names.reverse if swapped else names.scalar
            return operator(name, INTERNAL, type(self))(self, scalar=other)
        left, right = (other, self) if swapped else (self, other)
        message = (
            f"unsupported operands for {sign}: {type(left).__name__!r} and "
            f"{type(right).__name__!r}; a symbol goes with a symbol or a number"
        )
        raise TypeError(message)

    def __add__(self: _S, other: Any) -> _S:
        return self._apply("+", other)

    def __radd__(self: _S, other: Any) -> _S:
        return self._apply("+", other, swapped=True)

    def __sub__(self: _S, other: Any) -> _S:
        return self._apply("-", other)

    def __rsub__(self: _S, other: Any) -> _S:
        return self._apply("-", other, swapped=True)

    def __mul__(self: _S, other: Any) -> _S:
        return self._apply("*", other)

    def __rmul__(self: _S, other: Any) -> _S:
        return self._apply("*", other, swapped=True)

    def __truediv__(self: _S, other: Any) -> _S:
        return self._apply("/", other)

    def __rtruediv__(self: _S, other: Any) -> _S:
        return self._apply("/", other, swapped=True)

    def __mod__(self: _S, other: Any) -> _S:
        return self._apply("%", other)

    def __rmod__(self: _S, other: Any) -> _S:
        return self._apply("%", other, swapped=True)

    def __pow__(self: _S, other: Any) -> _S:
        return self._apply("**", other)

    def __rpow__(self: _S, other: Any) -> _S:
        return self._apply("**", other, swapped=True)

    def __neg__(self: _S) -> _S:
        # MXNet multiplies by -1.0.
        return self._apply("*", -1.0)

    def __abs__(self: _S) -> _S:
        return operator("abs", "", type(self))(self)

    def __eq__(self: _S, other: object) -> _S:  # type: ignore[override]
        return self._apply("==", other)

    def __ne__(self: _S, other: object) -> _S:  # type: ignore[override]
        return self._apply("!=", other)

    def __gt__(self: _S, other: Any) -> _S:
        return self._apply(">", other)

    def __ge__(self: _S, other: Any) -> _S:
        return self._apply(">=", other)

    def __lt__(self: _S, other: Any) -> _S:
        return self._apply("<", other)

    def __le__(self: _S, other: Any) -> _S:
        return self._apply("<=", other)

    __hash__ = PlainGraph.__hash__


def _other_dialect(sign: str, left: PlainGraph, right: Any) -> str:
    kinds = [left.dialect, getattr(right, "dialect", type(right).__name__)]
    message = (
        f"{sign} would make a node of MXNet's operator, and the operands are of {kinds[0]!r} and "
        f"{kinds[1]!r}"
    )
    if sign in ("==", "!="):
        message += "; graphs are compared with first.graph.equals(second.graph)"
    return message
