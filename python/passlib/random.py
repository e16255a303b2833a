"""Random generators, in MXNet's module of this name."""

from __future__ import annotations

from passlib.arrays.random import seed

__all__ = ["seed"]
