"""Cases of operators, and the arrays they are made of."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One operator with inputs and attributes; tolerance None stands for that of the dtype."""

    operator: str
    inputs: tuple[np.ndarray, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    tolerance: float | None = None


def case(
    operator: str, *inputs: np.ndarray, tolerance: float | None = None, **attributes: Any
) -> Case:
    """Make a case; ``str`` writes attribute values as MXNet does."""
    return Case(operator, inputs, attributes, tolerance)


def of(*values: Any, dtype: str = "float32") -> np.ndarray:
    """Make an array of the given values."""
    return np.asarray(values).astype(dtype)


def real(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "float32") -> np.ndarray:
    """Draw uniform reals, the same in every run for equal arguments."""
    seed = zlib.crc32(repr((shape, low, high)).encode())
    return np.random.RandomState(seed).uniform(low, high, shape).astype(dtype)


def whole(*shape: int, low: int = -4, high: int = 9, dtype: str = "float32") -> np.ndarray:
    """Draw integers ``low <= n < high``, the same in every run for equal arguments."""
    seed = zlib.crc32(repr((shape, low, high)).encode())
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)
