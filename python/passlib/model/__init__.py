"""Models: a symbol together with its weights, from a file to results and back."""

from __future__ import annotations

from passlib.model.checkpoint import load_checkpoint, load_params, save_checkpoint
from passlib.model.graph import ModelGraph
from passlib.model.loading import load
from passlib.model.model import Model

__all__ = ["Model", "ModelGraph", "load", "load_checkpoint", "load_params", "save_checkpoint"]
