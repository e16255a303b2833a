"""Methods that MXNet's symbols have in common with arrays, and that need one: they are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from passlib.errors import UnsupportedError

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
    "__bool__": "a symbol has no truth value: comparisons of symbols are new symbols; compare with "
    "'is', or tojson() for equal graphs",
    "get_backend_symbol": "use optimize_for, which runs the passes of loaded libraries",
}


class NotImplementedForSymbol(UnsupportedError, TypeError):  # noqa: N818, MXNet's name
    """A method that arrays have and symbols do not.

    Parameters
    ----------
    function : callable
    alias : str, optional
        The operator of Python that calls it.
    *args : object
        Its arguments.
    why : str
        What to do instead.

    Examples
    --------
    >>> import passlib as mx
    >>> str(mx.base.NotImplementedForSymbol(mx.nd.NDArray.asnumpy, None))
    'Symbol.asnumpy: is for arrays, not for symbols '
    """

    def __init__(self, function: Any, alias: str | None, *args: Any, why: str = "") -> None:
        name = getattr(function, "__name__", str(function))
        also = f" (operator {alias})" if alias else ""
        what = why or f"is for arrays, not for symbols {args or ''}"
        super().__init__(f"Symbol.{name}{also}: {what}")


class ForArrays:
    """Methods that raise NotImplementedForSymbol and name the way out, as those of MXNet do."""

    __slots__ = ()

    @property
    def handle(self) -> None:
        """None: there is no object of MXNet's C library."""
        return None


def _refusing(name: str, why: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        del self, args, kwargs
        raise NotImplementedForSymbol(method, None, why=why)

    method.__name__ = name
    method.__doc__ = f"Raise NotImplementedForSymbol: {why}."
    return method


for _name, _why in _REASONS.items():
    setattr(ForArrays, _name, _refusing(_name, _why))
