"""What one case of an operator is, and the arrays that cases are made of."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Case", "case", "of", "real", "whole"]


@dataclass(frozen=True)
class Case:
    """One operator, its inputs and attributes; tolerance None means that of the dtype."""

    operator: str
    inputs: tuple[np.ndarray, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    tolerance: float | None = None


def case(
    operator: str, *inputs: np.ndarray, tolerance: float | None = None, **attributes: Any
) -> Case:
    """Make a case; attribute values are written as MXNet writes them, by ``str``."""
    return Case(operator, inputs, attributes, tolerance)


def of(*values: Any, dtype: str = "float32") -> np.ndarray:
    """Array of the values given."""
    return np.asarray(values).astype(dtype)


def real(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "float32") -> np.ndarray:
    """Uniform reals, the same for the same arguments at every run."""
    seed = zlib.crc32(repr((shape, low, high)).encode())
    return np.random.RandomState(seed).uniform(low, high, shape).astype(dtype)


def whole(*shape: int, low: int = -4, high: int = 9, dtype: str = "float32") -> np.ndarray:
    """Whole numbers of ``low <= n < high``, the same for the same arguments at every run."""
    seed = zlib.crc32(repr((shape, low, high)).encode())
    return np.random.RandomState(seed).randint(low, high, shape).astype(dtype)
