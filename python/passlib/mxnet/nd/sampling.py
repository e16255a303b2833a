"""Arrays of random numbers: ``nd.random``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from passlib.arrays import random
from passlib.arrays.context import Context
from passlib.arrays.creation import Shape, array, written
from passlib.arrays.ndarray import NDArray

_Sampler = Callable[..., Any]
_FLOAT32: Final = np.float32


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

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.uniform(mx.nd.array([0, 10]), mx.nd.array([1, 11]), shape=(3,)).shape
    (2, 3)
    """
    return _draw(_kind("uniform"), (low, high), shape, dtype, ctx, out)


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

    Examples
    --------
    >>> import passlib as mx
    >>> mx.random.seed(1)
    >>> first = mx.nd.random.normal(0, 2, shape=(2, 3))
    >>> mx.random.seed(1)
    >>> mx.test_utils.same(first, mx.nd.random.normal(0, 2, shape=(2, 3)))
    True
    """
    return _draw(_kind("normal"), (loc, scale), shape, dtype, ctx, out)


def randn(
    *shape: int, loc: Any = 0, scale: Any = 1, dtype: Any = None, ctx: Context | None = None
) -> NDArray:
    """Draw an array of this shape from the normal distribution; see `normal`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(loc, scale, shape, dtype, ctx)


def randint(
    low: Any,
    high: Any,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw integers from ``low`` to ``high - 1``, int32 by default, as `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> set(mx.nd.random.randint(0, 2, shape=(100,)).asnumpy().tolist())
    {0, 1}
    """
    return _draw(_kind("integers"), (low, high), shape, dtype or np.int32, ctx, out)


def exponential(
    scale: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the exponential distribution of mean ``scale``, as `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> bool((mx.nd.random.exponential(2, shape=(100,)).asnumpy() >= 0).all())
    True
    """
    return _draw(_kind("exponential"), (scale,), shape, dtype, ctx, out)


def gamma(
    alpha: Any = 1,
    beta: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the gamma distribution of shape ``alpha`` and scale ``beta``, as `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.gamma(9, 0.5, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(_kind("gamma"), (alpha, beta), shape, dtype, ctx, out)


def poisson(
    lam: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the Poisson distribution of rate ``lam``, as `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.poisson(mx.nd.array([1, 100]), shape=(5,)).shape
    (2, 5)
    """
    return _draw(_kind("poisson"), (lam,), shape, dtype, ctx, out)


def negative_binomial(
    k: Any = 1,
    p: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw the failures before ``k`` successes of probability ``p``, as `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.negative_binomial(k=3, p=0.5, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(_kind("negative_binomial"), (k, p), shape, dtype, ctx, out)


def generalized_negative_binomial(
    mu: Any = 1,
    alpha: Any = 1,
    shape: Shape | None = None,
    dtype: Any = None,
    ctx: Context | None = None,
    out: NDArray | None = None,
) -> NDArray:
    """Draw from the negative binomial distribution of mean ``mu`` and dispersion ``alpha``.

    It is the Poisson distribution whose rate has a gamma distribution of variance
    ``alpha * mu**2``. Other parameters are as of `uniform`.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.generalized_negative_binomial(2, 0.3, shape=(2, 3)).shape
    (2, 3)
    """
    return _draw(_overdispersed, (mu, alpha), shape, dtype, ctx, out)


def multinomial(
    data: Any,
    shape: Shape | None = None,
    get_prob: bool = False,
    out: NDArray | None = None,
    dtype: Any = "int32",
) -> Any:
    """Draw indices with the probabilities in the last axis of ``data``.

    Parameters
    ----------
    data : array
        Probabilities, which add up to 1 along the last axis.
    shape : int or sequence of int, optional
        Shape of the indices drawn for each distribution; by default one index.
    get_prob : bool
        Also return the logarithm of the probability of each index.
    out, dtype
        As of `uniform`; int32 by default.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.nd.random.multinomial(mx.nd.array([0, 1, 0]), shape=(4,)).asnumpy()
    array([1, 1, 1, 1], dtype=int32)
    """
    probabilities = np.asarray(data, np.float64)
    each = _sizes(shape)
    batch = probabilities.shape[:-1]
    total = int(np.prod(each, dtype=np.int64))
    flat = probabilities.reshape(-1, probabilities.shape[-1])
    ends = np.cumsum(flat, axis=-1)
    drawn = random.draw(lambda generator: generator.random((len(flat), total)))
    points = drawn * ends[:, -1:]
    found = np.stack([np.searchsorted(e, p, "right") for e, p in zip(ends, points, strict=True)])
    chosen = np.minimum(found, flat.shape[-1] - 1)
    full = (*batch, *each) or (1,)
    indices = _placed(chosen.reshape(full), getattr(data, "context", None), dtype, out)
    if not get_prob:
        return indices
    with np.errstate(divide="ignore"):
        logs = np.log(np.take_along_axis(flat, chosen, axis=-1)).reshape(full)
    return [indices, array(logs, getattr(data, "context", None))]


def shuffle(data: Any, out: NDArray | None = None) -> NDArray:
    """Return the elements along the first axis in random order.

    Examples
    --------
    >>> import passlib as mx
    >>> sorted(mx.nd.random.shuffle(mx.nd.array([3, 1, 2])).asnumpy().tolist())
    [1.0, 2.0, 3.0]
    """
    plain = np.asarray(data)
    shuffled = random.draw(lambda generator: generator.permutation(plain, axis=0))
    return _placed(shuffled, getattr(data, "context", None), plain.dtype, out)


def _kind(name: str) -> _Sampler:
    def sample(generator: np.random.Generator, *parameters: Any, size: Any) -> Any:
        return getattr(generator, name)(*parameters, size=size)

    return sample


def _overdispersed(generator: np.random.Generator, mu: Any, alpha: Any, *, size: Any) -> Any:
    spread = np.where(alpha == 0, 1.0, alpha)
    rates = generator.gamma(1 / spread, mu * spread, size=size)
    return generator.poisson(np.where(alpha == 0, mu, rates), size=size)


def _sizes(shape: Shape | None) -> tuple[int, ...]:
    if shape is None:
        return ()
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _draw(
    sample: _Sampler,
    parameters: Sequence[Any],
    shape: Shape | None,
    dtype: Any,
    ctx: Context | None,
    out: NDArray | None,
) -> NDArray:
    given = [np.asarray(value) for value in parameters]
    batch = np.broadcast_shapes(*(value.shape for value in given))
    each = _sizes(shape) if shape is not None or batch else (1,)
    wide = [value.reshape(value.shape + (1,) * len(each)) for value in given]
    numbers = random.draw(lambda generator: sample(generator, *wide, size=batch + each))
    return _placed(numbers, ctx, dtype, out)


def _placed(
    numbers: np.ndarray[Any, Any], ctx: Context | None, dtype: Any, out: NDArray | None
) -> NDArray:
    # "None" is how MXNet's operators spell an element type that is not given.
    given = dtype is not None and str(dtype) != "None"
    drawn: NDArray = array(numbers, ctx, dtype if given else _FLOAT32)
    if out is None:
        return drawn
    if not np.can_cast(drawn.dtype, out.dtype, "same_kind"):
        raise TypeError(f"numbers of {drawn.dtype} cannot be written to an array of {out.dtype}")
    result: NDArray = written(out, drawn)
    return result


def _like(function: _Sampler) -> _Sampler:
    def sample(data: Any, *parameters: Any, out: NDArray | None = None, **named: Any) -> NDArray:
        kind, context = data.dtype, getattr(data, "context", None)
        result: NDArray = function(
            *parameters, shape=tuple(data.shape), dtype=kind, ctx=context, out=out, **named
        )
        return result

    sample.__name__ = sample.__qualname__ = f"{function.__name__}_like"
    sample.__doc__ = (
        f"Draw as `{function.__name__}`, in shape, element type and device of an array."
    )
    return sample


def _rate(lam: Any = 1, *args: Any, **kwargs: Any) -> NDArray:
    """Draw from the exponential distribution of rate ``lam``."""
    return exponential(1 / np.asarray(lam), *args, **kwargs)


def _deviation(mu: Any, sigma: Any, *args: Any, **kwargs: Any) -> NDArray:
    """Draw from the normal distribution of mean ``mu`` and standard deviation ``sigma``."""
    return normal(mu, sigma, *args, **kwargs)


_DISTRIBUTIONS: Final[tuple[_Sampler, ...]] = (
    uniform,
    normal,
    exponential,
    gamma,
    poisson,
    negative_binomial,
    generalized_negative_binomial,
)

_LIKE: Final = {f"{function.__name__}_like": _like(function) for function in _DISTRIBUTIONS}
_LIKE["exponential_like"] = _like(_rate)

FUNCTIONS: Final[dict[str, _Sampler]] = {
    **{function.__name__: function for function in _DISTRIBUTIONS},
    **{function.__name__: function for function in (randn, randint, multinomial, shuffle)},
    **_LIKE,
}
"""The functions of ``nd.random``."""

OPERATORS: Final[dict[str, _Sampler]] = {
    **{f"_random_{name}": function for name, function in (*FUNCTIONS.items(), *_LIKE.items())},
    **{f"_sample_{function.__name__}": function for function in _DISTRIBUTIONS},
    "_random_exponential": _rate,
    "_sample_exponential": _rate,
    "_sample_normal": _deviation,
    "_sample_multinomial": multinomial,
    "_shuffle": shuffle,
}
"""The same by the name of MXNet's operator, with the operator's parameters."""
