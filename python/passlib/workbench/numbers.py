"""Differences between values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray
from passlib.errors import printable


@dataclass(frozen=True)
class Tolerance:
    """Tolerance of comparisons: ``|b - a| <= atol * max(1, max|a|) + rtol * |a|``.

    The largest value of an array scales ``atol``, because sums round relative to their largest
    terms. Integers, booleans and strings must be equal unless a tolerance is given.

    Attributes
    ----------
    rtol, atol : float or None
        None for the default of the dtype: 1e-3 and 1e-5 for float32, 1 % of that for float64, ten
        and a hundred times that for 16-bit types.

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

    def of(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        """Return ``rtol`` and ``atol`` for a dtype."""
        rtol, atol = 0.0, 0.0
        if dtype.kind in "fcV":
            rtol, atol = {2: (1e-2, 1e-3), 8: (1e-5, 1e-7)}.get(dtype.itemsize, (1e-3, 1e-5))
        return (rtol if self.rtol is None else self.rtol, atol if self.atol is None else self.atol)


@dataclass(frozen=True)
class Difference:
    """The difference between two values.

    Attributes
    ----------
    absolute, relative : float
        The largest differences of finite elements; relative to the elements of the first value.
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

    @property
    def equal(self) -> bool:
        """Whether the values agree within the tolerance."""
        return not self.what

    def __str__(self) -> str:
        state = f"different ({self.what})" if self.what else "equal"
        counts = [(self.nan, "NaN"), (self.inf, "infinite")]
        more = "".join(f", {count} {word} in only one model" for count, word in counts if count)
        largest = f"absolute {self.absolute:.3g}, relative {self.relative:.3g}"
        return f"{printable(self.name)}: {state}, {largest}{more}"

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes for JSON."""
        return asdict(self)

    def worse(self, other: Difference) -> Difference:
        """Return the larger of two differences of the same value."""
        if bool(self.what) != bool(other.what):
            return self if self.what else other
        mine, others = (self.nan + self.inf, self.absolute), (other.nan + other.inf, other.absolute)
        return self if mine >= others else other


def difference(name: str, first: Any, second: Any, tolerance: Tolerance) -> Difference:
    """Compare two values: arrays, or lists and dictionaries of arrays.

    The result is the largest difference of all arrays.
    """
    lefts, rights = list(_leaves(first)), list(_leaves(second))
    if len(lefts) != len(rights):
        return Difference(name, what=f"{len(lefts)} values, and {len(rights)}")
    found = Difference(name)
    for left, right in zip(lefts, rights, strict=True):
        found = _of_arrays(name, left, right, tolerance).worse(found)
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
    name: str, left: np.ndarray[Any, Any], right: np.ndarray[Any, Any], tolerance: Tolerance
) -> Difference:
    if left.shape != right.shape:
        return Difference(name, what=f"shapes {left.shape} and {right.shape}")
    if left.dtype != right.dtype:
        return Difference(name, what=f"types {left.dtype} and {right.dtype}")
    if left.dtype.kind in "OUS":
        return Difference(name, what="" if np.array_equal(left, right) else "values")
    rtol, atol = tolerance.of(left.dtype)
    wide = np.complex128 if left.dtype.kind == "c" else np.float64
    a, b = left.astype(wide).ravel(), right.astype(wide).ravel()
    nan = int(np.count_nonzero(np.isnan(a) != np.isnan(b)))
    infinite = np.isinf(a) | np.isinf(b)
    inf = int(np.count_nonzero(infinite & (a != b) & ~np.isnan(a) & ~np.isnan(b)))
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if not a.size:
        return Difference(name, nan=nan, inf=inf, what="values" if nan or inf else "")
    gaps, sizes = np.abs(b - a), np.abs(a)
    absolute = float(gaps.max())
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(gaps > 0, gaps / sizes, 0.0)
    beyond = np.any(gaps > atol * max(1.0, float(sizes.max())) + rtol * sizes)
    if not (rtol or atol):
        beyond = np.any(left != right)  # integers that float64 cannot represent
    what = "values" if nan or inf or bool(beyond) else ""
    return Difference(name, absolute, float(shares.max()), nan, inf, what)
