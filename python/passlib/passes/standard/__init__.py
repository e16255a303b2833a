"""The standard passes that are Python functions, imported when one of them is asked for."""

from __future__ import annotations

from passlib.passes.standard import (
    fold_constants,
    fold_shapes,
    linear,
    matmul_add,
    no_ops,
    resolve_if,
)

__all__ = ["fold_constants", "fold_shapes", "linear", "matmul_add", "no_ops", "resolve_if"]
