"""Short ways to find, call and feed the operators of test libraries."""

from __future__ import annotations

from typing import Any

import numpy as np

import passlib
from passlib.library.operator import Operator
from passlib.library.registry import find_operator

FLOAT = np.dtype(np.float32)


def operator(name: str) -> Operator:
    """Find a registered operator, which must be there."""
    found = find_operator(name)
    assert found is not None
    return found


def run(name: str, *arrays: Any, **kwargs: Any) -> Any:
    """Call an operator on arrays."""
    return getattr(passlib.nd, name)(*arrays, **kwargs)


def variables(*names: str) -> list[passlib.sym.Symbol]:
    """Make variables with these names."""
    return [passlib.sym.var(name) for name in names]
