"""MXNet's modules and functions that passlib does not have: each raises UnsupportedError."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, NoReturn

from passlib.errors import UnsupportedError

_TRAINS: Final = (
    "passlib does not train; it loads, changes and runs models. Train with MXNet, and save with "
    "export or save_checkpoint"
)
NO_NP_ARRAYS: Final = (
    "passlib has no arrays of mx.np; models that use them load and run, and arrays are those of "
    "passlib.nd. np_shape alone changes the reading of shapes"
)
_NO_PYTHON: Final = (
    "passlib runs no operators written in Python; write the operator in C++ with lib_api.h, or the "
    "pass with passlib.graph_pass"
)
_NO_CELLS: Final = (
    "passlib has no cells of recurrent layers; use sym.RNN, or load the symbol of unrolled cells "
    "that MXNet saved"
)


def refuse(name: str, why: str = _TRAINS) -> Callable[..., NoReturn]:
    """Return a function that raises UnsupportedError; it may stand for a base class, too.

    Parameters
    ----------
    name : str
        What the message names, such as ``optimizer.SGD``.
    why : str
        The reason, and what to do instead.
    """

    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"{name}: {why}")

    refused.__name__ = refused.__qualname__ = name.rpartition(".")[2]
    refused.__doc__ = f"Raise UnsupportedError: {name} is not part of passlib."
    vars(refused)["__mro_entries__"] = refused  # Python calls this of a base that is no class
    return refused


class Refused(ModuleType):
    """A module all of whose names are functions of `refuse`.

    Parameters
    ----------
    name : str
        Such as ``passlib.optimizer``.
    why : str
        As of `refuse`.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self._why = why

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)
        return refuse(f"{self.__name__}.{name}", self._why)


Trainer = refuse("gluon.Trainer")

_NAMES: Final = {
    "callback": ("callback", _TRAINS),
    "executor_manager": ("executor_manager", _TRAINS),
    "kv": ("kvstore", _TRAINS),
    "kvstore": ("kvstore", _TRAINS),
    "lr_scheduler": ("lr_scheduler", _TRAINS),
    "mod": ("module", _TRAINS),
    "module": ("module", _TRAINS),
    "np": ("np", NO_NP_ARRAYS),
    "npx": ("npx", NO_NP_ARRAYS),
    "numpy": ("numpy", NO_NP_ARRAYS),
    "numpy_extension": ("numpy_extension", NO_NP_ARRAYS),
    "operator": ("operator", _NO_PYTHON),
    "optimizer": ("optimizer", _TRAINS),
    "rnn": ("rnn", _NO_CELLS),
}

modules = {name: Refused(f"passlib.{own}", why) for name, (own, why) in _NAMES.items()}
"""MXNet's modules that passlib does not have, by the names that scripts import them by."""

NUMPY_MODULES: Final = ("np", "npx", "numpy", "numpy_extension")
"""The modules of mx.np, which MXNet also has in ``nd`` and ``sym``."""
