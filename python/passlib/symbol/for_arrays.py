"""Methods that MXNet's symbols have in common with arrays, and that need one: they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from passlib.errors import UnsupportedError

__all__ = ["ForArrays"]

_REASONS: Final = {
    **dict.fromkeys(
        ("as_in_context", "asnumpy", "asscalar", "copy", "wait_to_read"),
        "a symbol has no elements; bind or eval it to compute them",
    ),
    **dict.fromkeys(
        ("as_nd_ndarray", "as_np_ndarray"), "there is one kind of symbol, and none of mx.np"
    ),
    **dict.fromkeys(
        ("backward", "detach", "gradient"), "passlib does not train, so there are no gradients"
    ),
    "get_backend_symbol": "use optimize_for, which runs the passes of loaded libraries",
}


class ForArrays:
    """Methods that raise UnsupportedError and name the way out, as those of MXNet do."""

    __slots__ = ()

    @property
    def handle(self) -> None:
        """None: there is no object of MXNet's C library."""
        return None


def _refusing(name: str, why: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        del self, args, kwargs
        raise UnsupportedError(f"Symbol.{name}: {why}")

    method.__doc__ = f"Raise UnsupportedError: {why}."
    return method


for _name, _why in _REASONS.items():
    setattr(ForArrays, _name, _refusing(_name, _why))
