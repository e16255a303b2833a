"""Statistics of a weight, with a small histogram."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import BaseSparseNDArray

_MOST: Final = 1 << 16
"""Maximum number of sampled elements."""

_BINS: Final = 24
_FEW: Final = 16
"""Weights with at most this many elements show their values."""


def weight_facts(array: Any) -> dict[str, Any]:
    """Return dtype, shape, size, statistics and a histogram of a dense or sparse weight for JSON.

    Raises `FormatError` if the file that it is mapped from was changed.

    Returns
    -------
    dict
        ``type``, ``shape`` and ``bytes``; for numbers also ``least``, ``most``, ``mean``,
        ``deviation``, ``zeros`` (a fraction), ``histogram``, the counts ``nan`` and ``infinite``;
        ``sample``, the number of elements used, if not all; and ``values``, the elements of a small
        weight.
    """
    shape = [int(size) for size in array.shape]
    dtype = np.dtype(array.dtype)
    count = int(np.prod(shape, dtype=np.int64))
    facts: dict[str, Any] = {"type": dtype.name, "shape": shape, "bytes": count * dtype.itemsize}
    if not count or dtype.kind not in "biufV" or dtype.fields:
        return facts
    _core.check_files((array,))
    dense = array.asnumpy() if isinstance(array, BaseSparseNDArray) else array
    flat = np.asarray(dense).view(np.ndarray).reshape(-1)
    if count > _MOST:
        flat = flat[:: -(-count // _MOST)]
        facts["sample"] = int(flat.size)
    with np.errstate(all="ignore"):
        wide = flat.astype(np.float64)
        facts |= {
            "nan": int(np.count_nonzero(np.isnan(wide))),
            "infinite": int(np.count_nonzero(np.isinf(wide))),
        }
        if count <= _FEW:
            facts["values"] = [_number(value) for value in wide]
        wide = wide[np.isfinite(wide)]
        if not wide.size:
            return facts
        least, most = float(wide.min()), float(wide.max())
        facts |= {
            "least": _number(least),
            "most": _number(most),
            "mean": _number(float(wide.mean())),
            "deviation": _number(float(wide.std())),
            "zeros": _number(float(np.count_nonzero(wide == 0)) / wide.size),
        }
        if np.isfinite(most - least) and most > least:
            places = ((wide - least) / (most - least) * _BINS).astype(np.int64)
            facts["histogram"] = np.bincount(np.minimum(places, _BINS - 1)).tolist()
    return facts


def _number(value: float) -> float | str:
    """Return a number with six digits; text for one that JSON lacks."""
    return float(f"{value:.6g}") if np.isfinite(value) else str(value)
