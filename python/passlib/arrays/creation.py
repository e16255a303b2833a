"""Functions that make arrays, with MXNet's names, arguments and default types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from passlib.arrays import dtypes
from passlib.arrays.context import Context, require_host
from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray

Shape: TypeAlias = int | Sequence[int]


def array(source_array: Any, ctx: Context | None = None, dtype: Any = None) -> Any:
    """Copy numbers into a new array.

    Parameters
    ----------
    source_array : array-like
        Numbers, nested lists, or an array of NumPy or of passlib.
    ctx : Context, optional
        The current one by default.
    dtype : dtype-like, optional
        By default the type of the source if it is an array of passlib, else float32: as in
        MXNet, a NumPy array of another type is converted.

    Returns
    -------
    NDArray
        A sparse array if the source is one.

    Raises
    ------
    UnsupportedError
        The context is a GPU, or MXNet does not have the element type.

    Examples
    --------
    >>> import numpy as np
    >>> import passlib as mx
    >>> mx.nd.array(np.arange(3)).dtype, mx.nd.array([1, 2], dtype="int32").asnumpy()
    (dtype('float32'), array([1, 2], dtype=int32))
    """
    context = require_host(ctx, "an array")
    if isinstance(source_array, BaseSparseNDArray):
        kind = source_array.dtype if dtype is None else dtype
        return source_array.astype(kind).as_in_context(context)
    if dtype is None:
        dtype = source_array.dtype if isinstance(source_array, NDArray) else np.float32
    return _place(np.array(source_array, _element_type(dtype), subok=False), context)


def full(
    shape: Shape,
    val: Any,
    ctx: Context | None = None,
    dtype: Any = None,
    out: NDArray | None = None,
) -> NDArray:
    """Make an array of one value.

    Parameters
    ----------
    ctx : Context, optional
        The current one by default.
    dtype : dtype-like, optional
        float32 by default.
    out : NDArray, optional
        The array to write to and return; its element type and device stay.

    Raises
    ------
    UnsupportedError
        The context is a GPU, or MXNet does not have the element type.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.full((2,), 7, dtype="int32").asnumpy()
    array([7, 7], dtype=int32)
    """
    context = require_host(ctx, "an array")
    made = _place(np.full(shape, val, _element_type(dtype)), context)
    return made if out is None else written(out, made)


def written(out: Any, made: NDArray) -> Any:
    """Write an array to the argument ``out`` of a function, dense or sparse, and return that.

    Raises `ValueError` if the two have different shapes.
    """
    if out.shape != made.shape:
        raise ValueError(f"out has the shape {out.shape}, but the result has {made.shape}")
    out[:] = made.astype(out.dtype)
    return out


def zeros(
    shape: Shape,
    ctx: Context | None = None,
    dtype: Any = None,
    stype: str = "default",
    out: NDArray | None = None,
) -> Any:
    """Make an array of zeros, sparse if ``stype`` is ``"row_sparse"`` or ``"csr"``.

    Otherwise as `full`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.zeros((2,)).asnumpy(), mx.nd.zeros((2, 3), stype="csr").stype
    (array([0., 0.], dtype=float32), 'csr')
    """
    made = full(shape, 0, ctx, dtype, out)
    return made if out is not None else made.tostype(stype)


def ones(
    shape: Shape, ctx: Context | None = None, dtype: Any = None, out: NDArray | None = None
) -> NDArray:
    """Make an array of ones, as `full`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.ones((2,)).asnumpy()
    array([1., 1.], dtype=float32)
    """
    return full(shape, 1, ctx, dtype, out)


def empty(shape: Shape, ctx: Context | None = None, dtype: Any = None) -> NDArray:
    """Make an array of undefined values, otherwise as `full`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.empty((2, 3)).shape
    (2, 3)
    """
    context = require_host(ctx, "an array")
    return _place(np.empty(shape, _element_type(dtype)), context)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: Any = None,
    ctx: Context | None = None,
    dtype: Any = np.float32,
) -> NDArray:
    """Make a 1-d array of evenly spaced numbers.

    Parameters
    ----------
    start : float
        The first number; without ``stop``, the end, and the first number is 0.
    stop : float, optional
        The end, which is excluded.
    repeat : int
        How often each number occurs.
    infer_range : bool, optional
        Ignored; accepted for compatibility with MXNet.
    ctx, dtype
        As in `full`, but None means float64, as in MXNet. Of integers, start and step lose their
        fractions.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.arange(3).asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    del infer_range  # MXNet's argument, without meaning for arrays
    context = require_host(ctx, "an array")
    kind = _element_type(np.float64 if dtype is None else dtype)
    first, end = (0, start) if stop is None else (start, stop)
    if kind.kind in "iu":
        # MXNet counts the numbers with the arguments as given, and then steps in whole numbers.
        count = max(math.ceil((end - first) / step), 0)
        numbers: np.ndarray[Any, Any] = int(first) + int(step) * np.arange(count)
    else:
        numbers = np.arange(first, end, step)
    return _place(np.repeat(numbers, repeat).astype(kind), context)


def _element_type(dtype: Any) -> np.dtype[Any]:
    resolved = dtypes.as_dtype(np.float32 if dtype is None else dtype)
    dtypes.code(resolved)
    return resolved


def _place(plain: np.ndarray[Any, Any], context: Context) -> NDArray:
    result = plain.view(NDArray)
    result._context = context
    return result
