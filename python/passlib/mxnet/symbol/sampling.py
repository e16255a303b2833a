"""Random numbers, ``sym.random``: parameters that are numbers, or symbols with one per element."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Number
from typing import Any

from passlib.mxnet.schema.calls import INTERNAL
from passlib.mxnet.symbol.composition import operator
from passlib.mxnet.symbol.symbol import Symbol


def _with(shape: Any, dtype: Any, given: dict[str, Any]) -> dict[str, Any]:
    chosen = {"shape": shape, "dtype": dtype}
    return {**{key: value for key, value in chosen.items() if value is not None}, **given}


def _draw(
    kind: str, parameters: tuple[Any, ...], shape: Any, dtype: Any, given: dict[str, Any]
) -> Symbol:
    given = _with(shape, dtype, given)
    if all(isinstance(value, Symbol) for value in parameters):
        return operator(f"_sample_{kind}", INTERNAL, Symbol)(*parameters, **given)
    if all(isinstance(value, Number) for value in parameters):
        return operator(f"_random_{kind}", INTERNAL, Symbol)(*parameters, **given)
    raise TypeError(
        f"random.{kind}: the parameters of the distribution are all numbers or all symbols, "
        f"not {parameters!r}"
    )


def _uniform(
    low: Any = 0, high: Any = 1, shape: Any = None, dtype: Any = None, **given: Any
) -> Symbol:
    """Draw uniformly from [low, high)."""
    return _draw("uniform", (low, high), shape, dtype, given)


def _normal(
    loc: Any = 0, scale: Any = 1, shape: Any = None, dtype: Any = None, **given: Any
) -> Symbol:
    """Draw from the normal distribution of mean ``loc``, standard deviation ``scale``."""
    return _draw("normal", (loc, scale), shape, dtype, given)


def _randn(*shape: int, loc: Any = 0, scale: Any = 1, **given: Any) -> Symbol:
    """Draw an array of this shape from the normal distribution."""
    return _draw("normal", (loc, scale), shape, given.pop("dtype", None), given)


def _poisson(lam: Any = 1, shape: Any = None, dtype: Any = None, **given: Any) -> Symbol:
    """Draw from the Poisson distribution of rate ``lam``."""
    return _draw("poisson", (lam,), shape, dtype, given)


def _exponential(scale: Any = 1, shape: Any = None, dtype: Any = None, **given: Any) -> Symbol:
    """Draw from the exponential distribution of mean ``scale``."""
    return _draw("exponential", (1.0 / scale,), shape, dtype, given)


def _gamma(
    alpha: Any = 1, beta: Any = 1, shape: Any = None, dtype: Any = None, **given: Any
) -> Symbol:
    """Draw from the gamma distribution of shape ``alpha`` and scale ``beta``."""
    return _draw("gamma", (alpha, beta), shape, dtype, given)


def _negative_binomial(
    k: Any = 1, p: Any = 1, shape: Any = None, dtype: Any = None, **given: Any
) -> Symbol:
    """Draw the failures before ``k`` successes of probability ``p``."""
    return _draw("negative_binomial", (k, p), shape, dtype, given)


def _generalized_negative_binomial(
    mu: Any = 1, alpha: Any = 1, shape: Any = None, dtype: Any = None, **given: Any
) -> Symbol:
    """Draw from the negative binomial of mean ``mu`` and dispersion ``alpha``."""
    return _draw("generalized_negative_binomial", (mu, alpha), shape, dtype, given)


def _multinomial(
    data: Symbol, shape: Any = None, get_prob: bool = True, dtype: Any = "int32", **given: Any
) -> Symbol:
    """Draw indices with the probabilities in the last axis of ``data``."""
    function = operator("_sample_multinomial", INTERNAL, Symbol)
    return function(data, get_prob=get_prob, **_with(shape, dtype, given))


def _shuffle(data: Symbol, **given: Any) -> Symbol:
    """Shuffle along the first axis."""
    return operator("_shuffle", INTERNAL, Symbol)(data, **given)


def _randint(low: int, high: int, shape: Any = None, dtype: Any = None, **given: Any) -> Symbol:
    """Draw integers uniformly from [low, high)."""
    return operator("_random_randint", INTERNAL, Symbol)(low, high, **_with(shape, dtype, given))


def rand_zipfian(
    true_classes: Symbol, num_sampled: int, range_max: int
) -> tuple[Symbol, Symbol, Symbol]:
    """Draw classes from an approximately log-uniform distribution.

    The probability of class ``c`` is ``log((c + 2) / (c + 1)) / log(range_max + 1)``.

    Parameters
    ----------
    true_classes : Symbol
        Classes whose expected counts are returned.
    range_max : int
        Number of classes.

    Returns
    -------
    samples, expected counts of ``true_classes``, expected counts of the samples : Symbol
        int64, float64, float64.
    """
    width = math.log(range_max + 1)
    drawn = _uniform(0, width, (num_sampled,), "float64")
    samples = (drawn.exp() - 1).astype("int64") % range_max

    def expected(classes: Symbol) -> Symbol:
        numbers = classes.astype("float64")
        counts: Symbol = ((numbers + 2.0) / (numbers + 1.0)).log() / width * num_sampled
        return counts

    return samples, expected(true_classes), expected(samples)


FUNCTIONS: dict[str, Callable[..., Symbol]] = {
    function.__name__[1:]: function
    for function in (
        _uniform,
        _normal,
        _randn,
        _poisson,
        _exponential,
        _gamma,
        _negative_binomial,
        _generalized_negative_binomial,
        _multinomial,
        _shuffle,
        _randint,
    )
}
"""The generators by the name of their distribution."""
