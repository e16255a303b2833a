"""Statistical tests of generators of random numbers, as MXNet's ``mxnet.test_utils`` has them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Generator = Callable[[int], Any]
"""Takes a number of samples and returns them."""


def gen_buckets_probs_with_ppf(
    ppf: Callable[[float], float], nbuckets: int
) -> tuple[list[tuple[float, float]], list[float]]:
    """Cut the range of a continuous distribution into parts of equal probability.

    Parameters
    ----------
    ppf : callable
        The inverse of the cumulative distribution function.
    nbuckets : int

    Returns
    -------
    buckets : list of (float, float)
        The ends of each part.
    probs : list of float

    Examples
    --------
    >>> from passlib.test_utils import gen_buckets_probs_with_ppf
    >>> gen_buckets_probs_with_ppf(lambda share: 10 * share, 2)
    ([(0.0, 5.0), (5.0, 10.0)], [0.5, 0.5])
    """
    ends = [ppf(i / nbuckets) for i in range(nbuckets + 1)]
    return list(itertools.pairwise(ends)), [1 / nbuckets] * nbuckets


def mean_check(generator: Generator, mu: float, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the mean of samples is within three standard errors of ``mu``.

    Parameters
    ----------
    generator : callable
        See `Generator`.
    mu, sigma : float
        Mean and standard deviation of the distribution.
    nsamples : int

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import mean_check
    >>> generator = np.random.default_rng(0)
    >>> mean_check(lambda size: generator.normal(9, 1, size), mu=0, sigma=1, nsamples=1000)
    False
    """
    samples = _drawn(generator, nsamples)
    return bool(abs(samples.mean() - mu) < 3 * sigma / math.sqrt(nsamples))


def var_check(generator: Generator, sigma: float, nsamples: int = 1000000) -> bool:
    """Whether the variance of samples is within three standard errors of ``sigma`` squared.

    The standard error is that of a normal distribution. Parameters are those of `mean_check`.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import var_check
    >>> generator = np.random.default_rng(0)
    >>> var_check(lambda size: generator.normal(0, 9, size), sigma=1, nsamples=1000)
    False
    """
    samples = _drawn(generator, nsamples)
    error = math.sqrt(2 * sigma**4 / (nsamples - 1))
    return bool(abs(samples.var(ddof=1) - sigma**2) < 3 * error)


def chi_square_check(
    generator: Generator, buckets: Sequence[Any], probs: Sequence[float], nsamples: int = 1000000
) -> tuple[float, np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Compare how often samples fall into parts of their range with what is expected.

    Parameters
    ----------
    generator : callable
        See `Generator`.
    buckets : sequence of (float, float) or of number
        Ends of ranges, the upper one not included; or the values of a discrete distribution.
    probs : sequence of float
        The probability of each.
    nsamples : int

    Returns
    -------
    p : float
        Probability of deviations that are as large, by Pearson's chi-squared test.
    observed, expected : numpy.ndarray
        Counts.

    Raises
    ------
    ValueError
        There are not as many probabilities as buckets, or fewer than two.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import chi_square_check
    >>> generator = np.random.default_rng(0)
    >>> p, observed, expected = chi_square_check(
    ...     lambda size: generator.random(size), [(0, 0.5), (0.5, 1)], [0.5, 0.5], nsamples=1000
    ... )
    >>> p > 0.01, expected
    (..., array([500..., 500...]))
    """
    if len(buckets) != len(probs) or len(buckets) < 2:
        raise ValueError(
            f"{len(buckets)} buckets and {len(probs)} probabilities: there must be as many of "
            "both, and at least two"
        )
    samples = _drawn(generator, nsamples)
    if isinstance(buckets[0], (list, tuple)):
        counts = [int(((samples >= low) & (samples < high)).sum()) for low, high in buckets]
    else:
        counts = [int((samples == value).sum()) for value in buckets]
    observed = np.array(counts)
    expected = np.asarray(probs, np.float64) * nsamples
    statistic = float((np.square(observed - expected) / expected).sum())
    return _beyond(statistic, len(buckets) - 1), observed, expected


def verify_generator(
    generator: Generator,
    buckets: Sequence[Any],
    probs: Sequence[float],
    nsamples: int = 1000000,
    nrepeat: int = 5,
    success_rate: float = 0.2,
    alpha: float = 0.05,
) -> list[float]:
    """Run `chi_square_check` several times.

    Parameters
    ----------
    generator, buckets, probs, nsamples
        See `chi_square_check`.
    nrepeat : int
    success_rate : float
        Share of the runs that must succeed.
    alpha : float
        A run succeeds if ``p`` is greater.

    Returns
    -------
    list of float
        ``p`` of each run.

    Raises
    ------
    AssertionError
        Too few succeed; the message has the counts of the last.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import verify_generator
    >>> generator = np.random.default_rng(0)
    >>> len(verify_generator(generator.random, [(0, 0.5), (0.5, 1)], [0.5, 0.5], nsamples=1000))
    5
    """
    runs = [chi_square_check(generator, buckets, probs, nsamples) for _ in range(nrepeat)]
    chances = [run[0] for run in runs]
    successes = sum(chance > alpha for chance in chances)
    if successes < nrepeat * success_rate:
        _, observed, expected = runs[-1]
        raise AssertionError(
            f"{successes} of {nrepeat} tests of the generator succeed, fewer than "
            f"{nrepeat * success_rate:g}; the chances are {chances}; the last run counts "
            f"{observed.tolist()} where {expected.tolist()} are expected in {list(buckets)}"
        )
    return chances


def _drawn(generator: Generator, count: int) -> np.ndarray[Any, Any]:
    found = generator(count)
    return np.asarray(found.asnumpy() if hasattr(found, "asnumpy") else found).reshape(-1)


def _beyond(statistic: float, freedom: int) -> float:
    """Return the chance that a chi-squared variable is larger.

    The regularized upper incomplete gamma function Q(freedom / 2, statistic / 2), by its recurrence
    in the first argument (NIST Digital Library of Mathematical Functions, 8.8.2 and 8.4).
    """
    x = statistic / 2
    order = 0.5 * (freedom % 2) or 1.0
    total = math.erfc(math.sqrt(x)) if freedom % 2 else math.exp(-x)
    while order < freedom / 2:
        if x > 0:
            total += math.exp(order * math.log(x) - x - math.lgamma(order + 1))
        order += 1
    return min(total, 1.0)
