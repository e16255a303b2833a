"""Functions of ``mx.sym`` that choose an operator by their arguments: constants, splits, powers."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from passlib.dialects.mxnet.schema.namespaces import INTERNAL
from passlib.symbol.composition.functions import operator, split_arguments
from passlib.symbol.symbol import Symbol

__all__ = [
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "zeros",
]


def _internal(op: str, /, *args: Any, **kwargs: Any) -> Symbol:
    return operator(op, INTERNAL, Symbol)(*args, **kwargs)


def _type(dtype: object) -> object:
    return "float32" if dtype is None else dtype


def zeros(shape: int | Sequence[int], dtype: object = None, **kwargs: Any) -> Symbol:
    """Make a constant of zeros, float32 by default."""
    return _internal("_zeros", shape=shape, dtype=_type(dtype), **kwargs)


def ones(shape: int | Sequence[int], dtype: object = None, **kwargs: Any) -> Symbol:
    """Make a constant of ones, float32 by default."""
    return _internal("_ones", shape=shape, dtype=_type(dtype), **kwargs)


def full(shape: int | Sequence[int], val: float, dtype: object = None, **kwargs: Any) -> Symbol:
    """Make a constant whose elements are all ``val``."""
    return _internal("_full", shape=shape, dtype=_type(dtype), value=float(val), **kwargs)


def eye(
    N: int,  # noqa: N803, the names are MXNet's
    M: int = 0,  # noqa: N803
    k: int = 0,
    dtype: object = None,
    **kwargs: Any,
) -> Symbol:
    """Make an N x M matrix (N x N where M is 0) with ones on the ``k``-th diagonal."""
    return _internal("_eye", N, M, k, dtype=_type(dtype), **kwargs)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: object = None,
) -> Symbol:
    """Make a vector from ``start`` up to, without, ``stop``; of one number, from 0 up to it."""
    return _internal(
        "_arange",
        start=start,
        stop=stop,
        step=step,
        repeat=repeat,
        infer_range=infer_range,
        name=name,
        dtype=_type(dtype),
    )


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    name: str | None = None,
    dtype: object = None,
) -> Symbol:
    """Make a vector of ``num`` numbers at equal distances."""
    return _internal(
        "_linspace",
        start=start,
        stop=stop,
        num=num,
        endpoint=endpoint,
        name=name,
        dtype=_type(dtype),
    )


def histogram(
    a: Symbol,
    bins: Symbol | int = 10,
    range: tuple[float, float] | None = None,
    **kwargs: Any,
) -> Symbol:
    """Count the elements of ``a`` in each bin.

    Raises
    ------
    ValueError
        ``bins`` is a number and there is no ``range``, or ``bins`` is neither.
    """
    if isinstance(bins, Symbol):
        return _internal("_histogram", data=a, bins=bins, **kwargs)
    if not isinstance(bins, (int, np.integer)):
        message = f"histogram: bins is a number or a symbol, not {bins!r}"
        raise ValueError(message)
    if range is None:
        message = "histogram: a number of bins needs range=(low, high)"
        raise ValueError(message)
    return _internal("_histogram", data=a, bin_cnt=bins, range=range, **kwargs)


def split_v2(
    ary: Symbol,
    indices_or_sections: int | tuple[int, ...],
    axis: int = 0,
    squeeze_axis: bool = False,
) -> Symbol:
    """Split along an axis into equal parts, or at the given indices.

    Raises
    ------
    ValueError
        ``indices_or_sections`` is neither an int nor a tuple of int.
    """
    attributes = split_arguments(indices_or_sections, axis, squeeze_axis)
    return _internal("_split_v2", ary, *attributes)


def _binary(lhs: Any, rhs: Any, both: str, left: str, right: str, plain: Any, function: str) -> Any:
    if isinstance(lhs, Symbol) and isinstance(rhs, Symbol):
        return _internal(both, lhs, rhs)
    if isinstance(lhs, Symbol) and isinstance(rhs, Number):
        return _internal(left, lhs, scalar=rhs)
    if isinstance(lhs, Number) and isinstance(rhs, Symbol):
        return _internal(right, rhs, scalar=lhs)
    if isinstance(lhs, Number) and isinstance(rhs, Number):
        return plain(lhs, rhs)
    message = f"{function} takes symbols and numbers, not {type(lhs)} and {type(rhs)}"
    raise TypeError(message)


def pow(base: Any, exp: Any) -> Any:
    """Raise to a power, element by element; either argument may be a number."""
    names = ("_Power", "_PowerScalar", "_RPowerScalar")
    return _binary(base, exp, *names, lambda a, b: a**b, "pow")


power = pow


def maximum(left: Any, right: Any) -> Any:
    """Return the elementwise maximum; either argument may be a number."""
    names = ("_Maximum", "_MaximumScalar", "_MaximumScalar")
    return _binary(left, right, *names, max, "maximum")


def minimum(left: Any, right: Any) -> Any:
    """Return the elementwise minimum; either argument may be a number."""
    names = ("_Minimum", "_MinimumScalar", "_MinimumScalar")
    return _binary(left, right, *names, min, "minimum")


def hypot(left: Any, right: Any) -> Any:
    """Return the length of the hypotenuse, elementwise; either argument may be a number."""
    names = ("_Hypot", "_HypotScalar", "_HypotScalar")
    return _binary(left, right, *names, np.hypot, "hypot")
