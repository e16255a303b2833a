"""Comparison of arrays within MXNet's tolerances for their element types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

_EXACT: Final = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")
_RTOLS: Final = MappingProxyType({"float16": 1e-2, "float32": 1e-4, "float64": 1e-5})
_ATOLS: Final = MappingProxyType({"float16": 1e-1, "float32": 1e-3, "float64": 1e-20})


def default_rtols() -> dict[np.dtype[Any], float]:
    """Return the relative tolerance of each element type, as MXNet has them.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import default_rtols
    >>> default_rtols()[np.dtype("float64")]
    1e-05
    """
    return {np.dtype(name): tol for name, tol in {**_RTOLS, **dict.fromkeys(_EXACT, 0)}.items()}


def default_atols() -> dict[np.dtype[Any], float]:
    """Return the absolute tolerance of each element type, as MXNet has them.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import default_atols
    >>> default_atols()[np.dtype("float16")]
    0.1
    """
    return {np.dtype(name): tol for name, tol in {**_ATOLS, **dict.fromkeys(_EXACT, 0)}.items()}


def get_rtol(rtol: float | None = None, dtype: Any = np.float64) -> float:
    """Return a relative tolerance, by default that of the element type.

    Examples
    --------
    >>> from passlib.test_utils import get_rtol
    >>> get_rtol(0.5), get_rtol(dtype="float64")
    (0.5, 1e-05)
    """
    return default_rtols().get(np.dtype(dtype), _RTOLS["float32"]) if rtol is None else rtol


def get_atol(atol: float | None = None, dtype: Any = np.float64) -> float:
    """Return an absolute tolerance, by default that of the element type.

    Examples
    --------
    >>> from passlib.test_utils import get_atol
    >>> get_atol(0.5), get_atol(dtype="float16")
    (0.5, 0.1)
    """
    return default_atols().get(np.dtype(dtype), _ATOLS["float32"]) if atol is None else atol


def default_numeric_eps() -> dict[np.dtype[Any], float]:
    """Return MXNet's step of numeric differentiation for each real element type.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import default_numeric_eps
    >>> 0 < default_numeric_eps()[np.dtype("float64")] < 1
    True
    """
    bits = {"float16": 6, "float32": 9, "float64": 14}
    return {np.dtype(name): 2.0**-number for name, number in bits.items()}


def get_etol(etol: float | None = None) -> float:
    """Return the share of elements that may differ, by default none.

    Examples
    --------
    >>> from passlib.test_utils import get_etol
    >>> get_etol(), get_etol(0.1)
    (0, 0.1)
    """
    return 0 if etol is None else etol


def get_tolerance(dat: Any, tol: float | None, default_tol: Mapping[np.dtype[Any], float]) -> float:
    """Return a tolerance for an array, by default that of its element type.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import default_rtols, get_tolerance
    >>> get_tolerance(np.ones(2), None, default_rtols()), get_tolerance(np.ones(2), 0.5, {})
    (1e-05, 0.5)
    """
    return default_tol[effective_dtype(dat)] if tol is None else tol


def effective_dtype(dat: Any) -> np.dtype[Any]:
    """Return the element type whose tolerances concern an array: its own.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import effective_dtype
    >>> effective_dtype(np.ones(2, "float16"))
    dtype('float16')
    """
    found: np.dtype[Any] = np.asarray(dat).dtype if not hasattr(dat, "dtype") else dat.dtype
    return np.dtype(found)


def get_tols(x: Any, y: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """Return the tolerances for two arrays: given ones, or those of the less exact type.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import get_tols
    >>> get_tols(np.ones(2), np.ones(2, "float16"), None, 0.5)
    (0.01, 0.5)
    """
    types = [effective_dtype(x), effective_dtype(y)]
    return (
        max(get_rtol(rtol, dtype) for dtype in types),
        max(get_atol(atol, dtype) for dtype in types),
    )


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have equal shapes and elements.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import same
    >>> same(np.ones(2), np.ones(2)), same(np.ones(2), np.ones(3))
    (True, False)
    """
    return bool(np.array_equal(_plain(a), _plain(b)))


def same_array(array1: Any, array2: Any) -> bool:
    """Whether two arrays are of the same elements in the same memory.

    Examples
    --------
    >>> import passlib as mx
    >>> x = mx.nd.ones((2,))
    >>> mx.test_utils.same_array(x, x[:]), mx.test_utils.same_array(x, x.copy())
    (True, False)
    """
    return same(array1, array2) and bool(np.shares_memory(array1, array2))


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Whether two arrays are equal within the tolerances.

    Parameters
    ----------
    rtol, atol : float, optional
        By default those of `get_tols`.
    equal_nan : bool
        Whether NaN equals NaN.
    use_broadcast : bool
        Whether shapes may differ by broadcasting.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import almost_equal
    >>> almost_equal(np.ones(2), np.ones(2) + 1e-3), almost_equal(np.ones(2), np.zeros(2), atol=2)
    (False, True)
    """
    left, right = _plain(a), _plain(b)
    if not use_broadcast and left.shape != right.shape:
        return False
    rtol, atol = get_tols(left, right, rtol, atol)
    return bool(np.allclose(left, right, rtol, atol, equal_nan))


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Check that two arrays are equal within the tolerances; see `almost_equal`.

    Parameters
    ----------
    names : (str, str)
        For the message.
    mismatches : (int, int)
        Ignored; accepted for compatibility with MXNet, which prints that many.

    Raises
    ------
    AssertionError
        They are not; the message has the largest difference, relative to the tolerances, and its
        place.
    ValueError
        The shapes cannot be broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal
    >>> try:
    ...     assert_almost_equal(np.zeros(2), np.array([0, 1]), names=("ours", "theirs"))
    ... except AssertionError as error:
    ...     print("theirs" in str(error))
    True
    """
    del mismatches
    left, right = _plain(a), _plain(b)
    if not use_broadcast and left.shape != right.shape:
        raise AssertionError(f"{names[0]} has shape {left.shape}, {names[1]} {right.shape}")
    assert_almost_equal_with_err(left, right, rtol, atol, 0, names, equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    etol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Check as `assert_almost_equal`, but let a share ``etol`` of the elements differ.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal_with_err
    >>> assert_almost_equal_with_err(np.zeros(4), np.array([0, 0, 0, 1]), etol=0.3)
    """
    del mismatches
    left, right = _plain(a), _plain(b)
    if almost_equal(left, right, rtol, atol, equal_nan):
        return
    rtol, atol = get_tols(left, right, rtol, atol)
    one, other = np.broadcast_arrays(left.astype(np.float64), right.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.abs(one - other) / (atol + rtol * np.abs(other))
    unlike = np.isnan(one) ^ np.isnan(other) if equal_nan else np.isnan(one) | np.isnan(other)
    error = np.where(unlike, np.inf, np.nan_to_num(error, nan=0.0, posinf=np.inf))
    place = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    share = float(np.mean(error > 1))
    if share <= get_etol(etol) and share < 1:
        return
    raise AssertionError(
        f"{names[0]} and {names[1]} differ by {error[place]:f} times the tolerance "
        f"(rtol={rtol:e}, atol={atol:e}) at {place}: {one[place]:.8f} and {other[place]:.8f}; "
        f"{share:.2%} of the elements differ by more than it"
    )


def checkShapes(a: Any, b: Any) -> None:  # noqa: N802 (MXNet's name)
    """Check that two arrays have one shape.

    Raises
    ------
    AssertionError
        They do not.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import checkShapes
    >>> checkShapes(np.zeros((2, 3)), np.ones((2, 3)))
    """
    if a.shape != b.shape:
        raise AssertionError(f"the shapes {a.shape} and {b.shape} differ")


def locationError(  # noqa: N802 (MXNet's name)
    a: Any,
    b: Any,
    index: tuple[int, ...],
    names: tuple[str, str],
    maxError: bool = False,  # noqa: N803 (MXNet's name)
) -> str:
    """Describe the elements at a place of two arrays, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import locationError
    >>> text = locationError(np.zeros(2), np.ones(2), (1,), ("ours", "theirs"))
    >>> "ours" in text, "theirs" in text
    (True, True)
    """
    largest = "maximum " if maxError else ""
    one, other = (f"{name}={_plain(x)[index]:.8f}" for name, x in zip(names, (a, b), strict=True))
    return f"Location of {largest}error: {index}, {one}, {other}"


def assert_allclose(
    a: Any, b: Any, rtol: float = 1e-7, atol: float = 0, equal_nan: bool = True
) -> None:
    """Check that two arrays are equal within these tolerances, as `assert_almost_equal`.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_allclose
    >>> assert_allclose(np.ones(2), np.ones(2) + 1e-8)
    """
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_almost_equal_ignore_nan(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    names: tuple[str, str] = ("a", "b"),
) -> None:
    """Check as `assert_almost_equal` the elements that are NaN in neither array.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import assert_almost_equal_ignore_nan
    >>> assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1, 2]))
    """
    left, right = _plain(a).copy(), _plain(b).copy()
    unknown = np.isnan(left) | np.isnan(right)
    left[unknown] = right[unknown] = 0
    assert_almost_equal(left, right, rtol, atol, names)


def compare_ndarray_tuple(
    t1: Any, t2: Any, rtol: float | None = None, atol: float | None = None
) -> None:
    """Check as `assert_almost_equal` all arrays of nested tuples; None stands for any.

    Examples
    --------
    >>> import numpy as np
    >>> from passlib.test_utils import compare_ndarray_tuple
    >>> compare_ndarray_tuple((np.ones(2), None), (np.ones(2), np.zeros(3)))
    """
    if t1 is None or t2 is None:
        return
    if isinstance(t1, Sequence):
        for one, other in zip(t1, t2, strict=True):
            compare_ndarray_tuple(one, other, rtol, atol)
        return
    assert_almost_equal(t1, t2, rtol, atol)


def _plain(value: Any) -> np.ndarray[Any, Any]:
    return np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
