"""Functions of ``mx.sym`` that choose an operator by their arguments: constants, splits, powers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np

from passlib.arrays import dtypes
from passlib.graph import scope
from passlib.graph.node import Entry
from passlib.model.graph import ModelGraph
from passlib.model.graph import group as parts_of_one_model
from passlib.mxnet.schema.calls import INTERNAL
from passlib.mxnet.schema.operator import hidden_on_variable, is_dunder
from passlib.mxnet.symbol.composition import Variable, operator, split_arguments
from passlib.mxnet.symbol.symbol import Symbol

_STORAGE_TYPES = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}


def group(symbols: Iterable[ModelGraph]) -> Any:
    """Return one symbol with the outputs of several, in order.

    Raises
    ------
    TypeError
        There are no symbols, or something else is among them.
    UnsupportedError
        A symbol is of another dialect, and the others are not parts of the same model.

    Examples
    --------
    >>> import passlib as mx
    >>> x = mx.sym.var("x")
    >>> mx.sym.Group([mx.sym.exp(x, name="a"), mx.sym.sqrt(x, name="b")]).list_outputs()
    ['a_output', 'b_output']
    """
    members = list(symbols) if isinstance(symbols, Iterable) else []
    if not members or not all(isinstance(member, ModelGraph) for member in members):
        raise TypeError("Group expects a list of at least one symbol, and nothing but symbols")
    if all(isinstance(member, Symbol) for member in members):
        return Symbol([entry for member in members for entry in member.entries])
    return parts_of_one_model(members)


def var(
    name: str,
    attr: Mapping[str, str] | None = None,
    shape: object = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: object = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: object,
) -> Symbol:
    """Create a variable: an input or a parameter.

    Parameters
    ----------
    attr : mapping of str to str, optional
        Further attributes; they win over those of the `AttrScope`.
    shape : tuple of int, optional
        Stored as ``__shape__``; 0 or -1 stands for an unknown extent.
    lr_mult, wd_mult : float, optional
        Factors on learning rate and weight decay.
    dtype : str or numpy.dtype, optional
        Stored as ``__dtype__``, MXNet's number of the type.
    init : str or object with a method ``dumps``, optional
        Initialiser, stored as ``__init__``.
    **kwargs
        Attributes whose names begin and end with two underscores.

    Raises
    ------
    TypeError
        The name is no string.
    ValueError
        A keyword without the underscores, or an unknown storage type.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.Variable("weight", lr_mult=2).attr("__lr_mult__")
    '2'
    """
    if not isinstance(name, str):
        raise TypeError(f"a variable's name is a string, not {type(name).__name__}")
    given: dict[str, str] = dict(scope.current().get(attr))
    if shape is not None:
        given["__shape__"] = scope.text(shape)
    if lr_mult is not None:
        given["__lr_mult__"] = scope.text(lr_mult)
    if wd_mult is not None:
        given["__wd_mult__"] = scope.text(wd_mult)
    if dtype is not None:
        given["__dtype__"] = str(dtypes.code(dtypes.as_dtype(dtype)))
    if init is not None:
        given["__init__"] = init if isinstance(init, str) else str(init.dumps())
    if stype is not None:
        if stype not in _STORAGE_TYPES:
            raise ValueError(
                f"variable {name!r}: stype {stype!r} is none of {', '.join(_STORAGE_TYPES)}"
            )
        given["__storage_type__"] = str(_STORAGE_TYPES[stype])
    for key, value in kwargs.items():
        if not is_dunder(key):
            raise ValueError(
                f"variable {name!r}: unknown argument {key!r}; attributes of your own begin and "
                f"end with two underscores, e.g. __{key}__"
            )
        given[key] = scope.text(value)
    attrs: dict[str, str] = {}
    for key, value in given.items():
        attrs[hidden_on_variable(key)] = scope.text(value)
    return Symbol((Entry(Variable(name, attrs)),))


def _internal(op: str, /, *args: Any, **kwargs: Any) -> Symbol:
    return operator(op, INTERNAL, Symbol)(*args, **kwargs)


def _type(dtype: object) -> object:
    return "float32" if dtype is None else dtype


def zeros(shape: int | Sequence[int], dtype: object = None, **kwargs: Any) -> Symbol:
    """Return a constant of zeros, float32 by default.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.zeros((2,)).eval()[0].asnumpy()
    array([0., 0.], dtype=float32)
    """
    return _internal("_zeros", shape=shape, dtype=_type(dtype), **kwargs)


def ones(shape: int | Sequence[int], dtype: object = None, **kwargs: Any) -> Symbol:
    """Return a constant of ones, float32 by default.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.ones((2,)).eval()[0].asnumpy()
    array([1., 1.], dtype=float32)
    """
    return _internal("_ones", shape=shape, dtype=_type(dtype), **kwargs)


def full(shape: int | Sequence[int], val: float, dtype: object = None, **kwargs: Any) -> Symbol:
    """Return a constant whose elements are all ``val``.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.full((2,), 7).eval()[0].asnumpy()
    array([7., 7.], dtype=float32)
    """
    return _internal("_full", shape=shape, dtype=_type(dtype), value=float(val), **kwargs)


def eye(
    N: int,  # noqa: N803, the names are MXNet's
    M: int = 0,  # noqa: N803
    k: int = 0,
    dtype: object = None,
    **kwargs: Any,
) -> Symbol:
    """Return an N x M matrix (N x N if M is 0) with ones on the ``k``-th diagonal.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.eye(2).eval()[0].asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
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
    """Return numbers from ``start`` to ``stop`` (excluded); without ``stop``, from 0 to ``start``.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.arange(0, 3).eval()[0].asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
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
    """Return ``num`` evenly spaced numbers.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.linspace(0, 1, 3).eval()[0].asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
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
    a: Symbol, bins: Symbol | int = 10, range: tuple[float, float] | None = None, **kwargs: Any
) -> Symbol:
    """Count the elements of ``a`` in each bin.

    Raises
    ------
    ValueError
        ``bins`` is a number and there is no ``range``, or ``bins`` is neither.

    Examples
    --------
    >>> import passlib as mx
    >>> counts, edges = mx.sym.histogram(mx.sym.var("x"), bins=2, range=(0, 4)).eval(
    ...     x=mx.nd.array([0, 1, 3])
    ... )
    >>> counts.asnumpy().tolist(), edges.asnumpy().tolist()
    ([2, 1], [0.0, 2.0, 4.0])
    """
    if isinstance(bins, Symbol):
        return _internal("_histogram", data=a, bins=bins, **kwargs)
    if not isinstance(bins, (int, np.integer)):
        raise ValueError(f"histogram: bins is a number or a symbol, not {bins!r}")
    if range is None:
        raise ValueError("histogram: a number of bins needs range=(low, high)")
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

    Examples
    --------
    >>> import passlib as mx
    >>> parts = mx.sym.split_v2(mx.sym.var("x"), (1,)).eval(x=mx.nd.array([1, 2, 3]))
    >>> [part.shape for part in parts]
    [(1,), (2,)]
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
    raise TypeError(f"{function} takes symbols and numbers, not {type(lhs)} and {type(rhs)}")


def pow(base: Any, exp: Any) -> Any:
    """Raise to a power, element by element; either argument may be a number.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.pow(mx.sym.var("x"), 2).eval(x=mx.nd.array([1, 3]))[0].asnumpy()
    array([1., 9.], dtype=float32)
    """
    names = ("_Power", "_PowerScalar", "_RPowerScalar")
    return _binary(base, exp, *names, lambda a, b: a**b, "pow")


power = pow


def maximum(left: Any, right: Any) -> Any:
    """Return the elementwise maximum; either argument may be a number.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.maximum(mx.sym.var("x"), 2).eval(x=mx.nd.array([1, 3]))[0].asnumpy()
    array([2., 3.], dtype=float32)
    """
    names = ("_Maximum", "_MaximumScalar", "_MaximumScalar")
    return _binary(left, right, *names, max, "maximum")


def minimum(left: Any, right: Any) -> Any:
    """Return the elementwise minimum; either argument may be a number.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.minimum(mx.sym.var("x"), 2).eval(x=mx.nd.array([1, 3]))[0].asnumpy()
    array([1., 2.], dtype=float32)
    """
    names = ("_Minimum", "_MinimumScalar", "_MinimumScalar")
    return _binary(left, right, *names, min, "minimum")


def hypot(left: Any, right: Any) -> Any:
    """Return the length of the hypotenuse, elementwise; either argument may be a number.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.sym.hypot(mx.sym.var("x"), 4).eval(x=mx.nd.array([3]))[0].asnumpy()
    array([5.], dtype=float32)
    """
    names = ("_Hypot", "_HypotScalar", "_HypotScalar")
    return _binary(left, right, *names, np.hypot, "hypot")
