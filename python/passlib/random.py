"""Random generators, under MXNet's name of the module."""

from __future__ import annotations

from passlib.arrays.random import seed

__all__ = ["seed"]
