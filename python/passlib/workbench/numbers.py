"""Differences between values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.errors import printable, short_repr


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of comparisons: ``|b - a| <= atol * scale + rtol * |a|``, for each element.

    Sums round relative to their terms, so ``scale`` is the size of the neighbours of an element in
    the reduction that it came from: the smaller of the medians of ``|a|`` along the last axis and
    along the channels (axis 1, of matrices axis 0), at least 1. A few large values, such as those
    of a mask, do not change a median. If the default ``atol`` is exceeded, the rounding of the
    first model is measured and added, see `passlib.workbench.compare`. Integers, booleans and
    strings must be equal unless a tolerance is given.

    Attributes
    ----------
    rtol, atol : float or None
        None for the default of the dtype: 1e-3 and 1e-5 for float32, 1 % of that for float64, ten
        and a hundred times that for 16-bit types. If both are 0, all bits must be equal, except
        that NaN equals NaN.
    half : bool
        Values of all types were computed in half precision: the defaults are those of 16-bit types.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> before, after = pl.Model(x * 1), pl.Model(x + 0.01)
    >>> pl.workbench.compare(before, after).equal
    False
    >>> pl.workbench.compare(before, after, atol=0.1).equal
    True
    """

    rtol: float | None = None
    atol: float | None = None
    half: bool = False

    def of(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return ``rtol`` and ``atol`` for a dtype."""
        rtol, atol = 0.0, 0.0
        if dtype.kind in "fcV":
            size = 2 if self.half else dtype.itemsize
            rtol, atol = {2: (1e-2, 1e-3), 8: (1e-5, 1e-7)}.get(size, (1e-3, 1e-5))
        return (rtol if self.rtol is None else self.rtol, atol if self.atol is None else self.atol)

    @property
    def exact(self) -> bool:
        """Whether all bits must be equal, except that NaN equals NaN."""
        return self.rtol == self.atol == 0

    @property
    def measures_rounding(self) -> bool:
        """Whether the rounding of the first model is added to the tolerance."""
        return self.atol is None


@short_repr
@dataclass(frozen=True)
class Difference:
    """The difference between two values.

    Attributes
    ----------
    absolute, relative : float
        The largest differences of finite elements; relative to the elements of the first value.
    share : float
        The largest difference of a finite element relative to its tolerance; above 1 it is too
        large.
    nan, inf : int
        Numbers of elements where only one value is NaN, or infinite with this sign.
    what : str
        Kind of difference: ``"values"``, or the shapes or dtypes; empty for equal values.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> found = pl.workbench.compare(pl.Model(pl.sym.relu(x)), pl.Model(pl.sym.relu(x) + 1))
    >>> round(found.outputs[0].absolute, 3)
    1.0
    """

    name: str
    absolute: float = 0.0
    relative: float = 0.0
    nan: int = 0
    inf: int = 0
    what: str = ""
    share: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether the values agree within the tolerance."""
        return not self.what

    @property
    def of_tolerance(self) -> str:
        """How large the difference is for the tolerance, in words."""
        if np.isinf(self.share):
            return "where the tolerance is 0"
        return f"{self.share:.3g} of the tolerance"

    def __str__(self) -> str:
        state = f"different ({self.what})" if self.what else "equal"
        counts = [(self.nan, "NaN"), (self.inf, "infinite")]
        more = "".join(f", {count} {word} in only one model" for count, word in counts if count)
        largest = f"absolute {self.absolute:.3g}, {self.of_tolerance}"
        return f"{printable(self.name)}: {state}, {largest}{more}"

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes for JSON."""
        return asdict(self)

    def worse(self, other: Difference) -> Difference:
        """Return the larger of two differences of the same value."""
        if bool(self.what) != bool(other.what):
            return self if self.what else other
        mine = self.nan + self.inf, self.share, self.absolute
        others = other.nan + other.inf, other.share, other.absolute
        return self if mine >= others else other


def difference(
    name: str,
    first: Any,
    second: Any,
    tolerance: Tolerance,
    repeats: Callable[[], Sequence[Any]] = tuple,
) -> Difference:
    """Compare two values: arrays, or lists and dictionaries of arrays.

    The result is the largest difference of all arrays.

    Parameters
    ----------
    repeats : function
        Returns values that differ from ``first`` by rounding alone. It is called if the values
        differ by more than the tolerance.
    """
    lefts, rights = list(_leaves(first)), list(_leaves(second))
    if len(lefts) != len(rights):
        return Difference(name, what=f"{len(lefts)} values, and {len(rights)}")
    found = Difference(name)
    for position, (left, right) in enumerate(zip(lefts, rights, strict=True)):

        def others(place: int = position) -> list[np.ndarray[Any, Any]]:
            leaves = [list(_leaves(each)) for each in repeats()]
            return [each[place] for each in leaves if len(each) == len(lefts)]

        found = _of_arrays(name, left, right, tolerance, others).worse(found)
    return found


def _leaves(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item[key] for key in sorted(item, key=str))
            yield np.array(sorted(map(str, item)), object)
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, BaseSparseNDArray):
            yield np.asarray(item.asnumpy())
        elif item is not None:
            yield np.asarray(item).view(np.ndarray)


def _of_arrays(
    name: str,
    left: np.ndarray[Any, Any],
    right: np.ndarray[Any, Any],
    tolerance: Tolerance,
    repeats: Callable[[], list[np.ndarray[Any, Any]]],
) -> Difference:
    if left.shape != right.shape:
        return Difference(name, what=f"shapes {left.shape} and {right.shape}")
    if left.dtype != right.dtype:
        return Difference(name, what=f"types {left.dtype} and {right.dtype}")
    if left.dtype.kind in "OUS":
        return Difference(name, what="" if np.array_equal(left, right) else "values")
    unequal = np.atleast_1d(_unequal_bits(left, right) if tolerance.exact else left != right)
    if not np.any(unequal):  # NaN, with the default tolerance, is not equal here
        return Difference(name)
    rtol, atol = tolerance.of(left.dtype)
    a, b = _wide(left), _wide(right)
    with np.errstate(all="ignore"):
        gaps, sizes = np.abs(b - a), np.abs(a)
        # float64 cannot represent all integers.
        gaps[unequal & (gaps == 0)] = np.finfo(np.float64).tiny
        finite = np.isfinite(a) & np.isfinite(b)
        bounds = atol + rtol * sizes
        if np.any((gaps > bounds) & finite) and atol:
            bounds = atol * _scales(sizes) + rtol * sizes
        excused = np.zeros(a.shape, np.bool_)
        if tolerance.measures_rounding and np.any((gaps > bounds) | ~finite):
            noise, excused = _rounding(a, repeats())
            bounds = bounds + noise
        shares = np.where(gaps > 0, gaps / bounds, 0.0)
        ratios = np.where(gaps > 0, gaps / sizes, 0.0)
    nan = int(np.count_nonzero((np.isnan(a) != np.isnan(b)) & ~excused))
    infinite = (np.isinf(a) | np.isinf(b)) & ~np.isnan(a) & ~np.isnan(b)
    inf = int(np.count_nonzero(infinite & (a != b) & ~excused))
    largest = [float(each[finite].max(initial=0.0)) for each in (gaps, ratios, shares)]
    wrong = nan or inf or largest[2] > 1 or (tolerance.exact and bool(np.any(unequal)))
    return Difference(name, largest[0], largest[1], nan, inf, "values" if wrong else "", largest[2])


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    wide = np.complex128 if array.dtype.kind == "c" else np.float64
    return np.atleast_1d(array.astype(wide))


def _unequal_bits(left: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> Any:
    """Return where elements have different bits and are not both NaN."""
    if left.dtype.kind in "biu":
        return left != right
    size = left.dtype.itemsize
    bits = [
        np.frombuffer(each.tobytes(), np.uint8).reshape(*each.shape, size) for each in (left, right)
    ]
    return np.any(bits[0] != bits[1], axis=-1) & ~((left != left) & (right != right))


def _scales(sizes: np.ndarray[Any, Any]) -> Any:
    """Return the size of the neighbours of each element, see `Tolerance`."""
    clean = np.where(np.isfinite(sizes), sizes, np.nan)
    return np.maximum(1.0, _typical(clean))


def _typical(values: np.ndarray[Any, Any]) -> Any:
    """Return for each element the smaller of its medians along the row and the channels."""
    rank = values.ndim
    axes = {rank - 1, 1 if rank > 2 else 0} if rank else set()
    found = np.full(values.shape, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows of NaN alone
        for axis in axes:
            if values.shape[axis] > 1:
                found = np.fmin(found, np.nanmedian(values, axis=axis, keepdims=True))
    return np.where(np.isfinite(found), found, 0.0)


_ROUNDINGS: Final = 16
"""Times that the measured rounding is added to the tolerance: a rewrite rounds at other places."""


def _rounding(a: np.ndarray[Any, Any], repeats: Sequence[np.ndarray[Any, Any]]) -> tuple[Any, Any]:
    """Return the tolerated rounding of each element, and where its infinities and NaN vary."""
    noise = np.zeros(a.shape)
    varying = np.zeros(a.shape, np.bool_)
    for repeat in repeats:
        if repeat.dtype.kind in "OUS":
            continue
        other = _wide(repeat)
        if other.shape != a.shape:
            continue
        noise = np.fmax(noise, np.where(np.isfinite(other - a), np.abs(other - a), 0.0))
        varying |= np.isfinite(other) != np.isfinite(a)
    return _ROUNDINGS * np.fmax(noise, _typical(noise)), varying
