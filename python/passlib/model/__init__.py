"""Models: a symbol together with its weights, from a file to results and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passlib.model.loading import load
from passlib.model.model import Model

if TYPE_CHECKING:
    from passlib.model.checkpoint import load_checkpoint, load_params, save_checkpoint

__all__ = ["Model", "load", "load_checkpoint", "load_params", "save_checkpoint"]


def __getattr__(name: str) -> Any:
    # Most programs that load a model know nothing of MXNet's checkpoints.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from passlib.model import checkpoint

    globals()[name] = getattr(checkpoint, name)
    return globals()[name]
