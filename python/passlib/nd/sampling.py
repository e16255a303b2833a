"""Arrays of random numbers, ``nd.random``, as inputs to try models with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passlib.arrays import random
from passlib.arrays.context import Context
from passlib.arrays.creation import Shape, array
from passlib.arrays.ndarray import NDArray

__all__ = ["FUNCTIONS", "normal", "randint", "randn", "uniform"]


def uniform(
    low: Any = 0,
    high: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the uniform distribution between two bounds.

    Parameters
    ----------
    low, high : float or array
        Bounds. Arrays are broadcast, and numbers are drawn for each pair of elements.
    shape : int or sequence of int, optional
        Shape of the numbers drawn, for each pair of bounds; by default one number.
    dtype : dtype-like, optional
        float32 by default.
    ctx : Context, optional
        The current one by default.
    out : NDArray, optional
        The array to write to and return.

    Returns
    -------
    NDArray
        The numbers differ from MXNet's, but are reproducible after `passlib.random.seed`.

    Raises
    ------
    UnsupportedError
        The context is a GPU, or MXNet does not have the element type.
    """
    return _draw("uniform", (low, high), shape, dtype or np.float32, ctx, out)


def normal(
    loc: Any = 0,
    scale: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the normal distribution of mean ``loc`` and standard deviation ``scale``.

    Other parameters are as of `uniform`.
    """
    return _draw("normal", (loc, scale), shape, dtype or np.float32, ctx, out)


def randn(
    *shape: int, loc: Any = 0, scale: Any = 1, dtype: Any = None, ctx: Context | None = None
) -> NDArray:
    """Draw an array of this shape from the normal distribution; see `normal`."""
    return normal(loc, scale, shape, dtype, ctx)


def randint(
    low: Any,
    high: Any,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw integers from ``low`` to ``high - 1``, int32 by default, as `uniform`."""
    return _draw("integers", (low, high), shape, dtype or np.int32, ctx, out)


FUNCTIONS = {function.__name__: function for function in (uniform, normal, randn, randint)}


def _draw(
    kind: str,
    parameters: Sequence[Any],
    shape: Shape | None,
    dtype: Any,
    ctx: Context | None,
    out: NDArray | None,
) -> NDArray:
    given = [np.asarray(value) for value in parameters]
    batch = np.broadcast_shapes(*(value.shape for value in given))
    if shape is None:
        shape = () if batch else (1,)
    each = (shape,) if isinstance(shape, int) else tuple(shape)
    wide = [value.reshape(value.shape + (1,) * len(each)) for value in given]
    numbers = random.draw(lambda generator: getattr(generator, kind)(*wide, size=batch + each))
    drawn: NDArray = array(numbers, ctx, dtype)
    if out is None:
        return drawn
    np.copyto(out, drawn)
    return out
