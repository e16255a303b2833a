"""What MXNet's tests ask of the machine and of the network."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from passlib.errors import UnsupportedError

_F = TypeVar("_F", bound=Callable[..., Any])


def _refused(name: str, what: str) -> Callable[..., NoReturn]:
    def refused(*args: Any, **kwargs: Any) -> NoReturn:
        del args, kwargs
        raise UnsupportedError(f"test_utils.{name}: passlib {what}")

    refused.__name__ = refused.__qualname__ = name
    refused.__doc__ = f"Raise UnsupportedError: passlib {what}."
    return refused


_DOWNLOADS = "downloads nothing; fetch the files with another program and load them from a path"
download = _refused("download", _DOWNLOADS)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """Discard what is written to the standard error of the process in a ``with`` block.

    Examples
    --------
    >>> import os
    >>> from passlib.test_utils import discard_stderr
    >>> with discard_stderr():
    ...     _ = os.write(2, b"nobody reads this")
    """
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def retry(n: int) -> Callable[[_F], _F]:
    """Return a decorator that calls a function again after an AssertionError, ``n`` times in all.

    Raises
    ------
    ValueError
        ``n`` is not positive.

    Examples
    --------
    >>> import itertools
    >>> from passlib.test_utils import retry
    >>> attempts = itertools.count(1)
    >>> @retry(3)
    ... def test_that_succeeds_in_the_end() -> None:
    ...     assert next(attempts) == 3
    >>> test_that_succeeds_in_the_end()
    """
    if n < 1:
        raise ValueError(f"retry({n}): the number of attempts must be positive")

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def attempts(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                with contextlib.suppress(AssertionError):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)

        return attempts  # type: ignore[return-value]

    return decorate


def is_cd_run() -> bool:
    """Whether the environment says that MXNet's continuous delivery runs.

    Examples
    --------
    >>> from passlib.test_utils import environment, is_cd_run
    >>> with environment("CD_JOB", "1"):
    ...     is_cd_run()
    True
    """
    return os.environ.get("CD_JOB", "0") == "1"
