"""MXNet's modules for training. passlib does not train: what would, says so when it is used."""

from __future__ import annotations

from passlib.training import autograd
from passlib.training.refusal import Refused, refuse

__all__ = ["Trainer", "autograd", "modules", "refuse"]

Trainer = refuse("gluon.Trainer")

_NAMES = {
    "callback": "callback",
    "executor_manager": "executor_manager",
    "kv": "kvstore",
    "kvstore": "kvstore",
    "lr_scheduler": "lr_scheduler",
    "mod": "module",
    "module": "module",
    "optimizer": "optimizer",
}

modules = {name: Refused(f"passlib.{module}") for name, module in _NAMES.items()}
"""MXNet's modules that only training needs, by the names that scripts import them by."""
