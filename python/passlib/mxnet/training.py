"""MXNet's modules for training, whose functions raise UnsupportedError: passlib does not train."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from passlib.errors import UnsupportedError


def refuse(name: str) -> Callable[..., NoReturn]:
    """Return a function that raises UnsupportedError, naming what was called."""

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(
            f"{name}: passlib does not train; it loads, changes and runs models. Train with MXNet, "
            "and save with export or save_checkpoint"
        )

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    refused.__doc__ = f"Raise UnsupportedError: {name} trains."
    return refused


class Refused(ModuleType):
    """A module all of whose names are functions of `refuse`.

    Parameters
    ----------
    name : str
        Such as ``passlib.optimizer``.
    """

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)
        return refuse(f"{self.__name__}.{name}")


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
