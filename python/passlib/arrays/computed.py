"""Arrays that a pass made of others, computed when somebody needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import passlib._core as _core

__all__ = ["computed", "still_to_compute"]


def computed(array: Any) -> Any:
    """Return an array with its elements, which nobody may write to if they were computed."""
    return array.array if type(array) is _core.ScaledArray else array


def still_to_compute(arrays: Mapping[str, Any]) -> list[str]:
    """Return the names of the arrays that are not in memory."""
    if _core.ScaledArray not in set(map(type, arrays.values())):
        return []
    return [name for name, array in arrays.items() if type(array) is _core.ScaledArray]
