"""Constants that a pass computes in double precision and stores as the model had them."""

from __future__ import annotations

from typing import Any

import numpy as np


def finite_as(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """Return an array in another element type if all its elements are finite in it."""
    with np.errstate(over="ignore"):
        made = array.astype(dtype)
    return made if bool(np.isfinite(made).all()) else None
