"""What MXNet's tests ask of the machine and of the network."""

from __future__ import annotations

import contextlib
import functools
import os
import platform
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
download_model = _refused("download_model", _DOWNLOADS)
get_bz2_data = _refused("get_bz2_data", _DOWNLOADS)
get_cifar10 = _refused("get_cifar10", _DOWNLOADS)
get_mnist = _refused("get_mnist", _DOWNLOADS)
get_mnist_iterator = _refused("get_mnist_iterator", _DOWNLOADS)
get_mnist_pkl = _refused("get_mnist_pkl", _DOWNLOADS)
get_mnist_ubyte = _refused("get_mnist_ubyte", _DOWNLOADS)
get_zip_data = _refused("get_zip_data", _DOWNLOADS)
get_im2rec_path = _refused("get_im2rec_path", "has no im2rec, which packs pictures for training")


class DummyIter:
    """Returns the first batch of an iterator again and again, to measure speed.

    Parameters
    ----------
    real_iter : iterator
        Its attributes ``provide_data``, ``provide_label`` and ``batch_size`` are taken over where
        it has them.

    Examples
    --------
    >>> from passlib.test_utils import DummyIter
    >>> batches = DummyIter(iter(["first", "second"]))
    >>> batches.next(), batches.next()
    ('first', 'first')
    """

    def __init__(self, real_iter: Any) -> None:
        self.real_iter = real_iter
        for name in ("provide_data", "provide_label", "batch_size"):
            setattr(self, name, getattr(real_iter, name, None))
        self.the_batch = next(iter(real_iter))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.the_batch

    next = __next__

    def reset(self) -> None:
        """Do nothing: every batch is the first one."""


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


def has_tvm_ops() -> bool:
    """Return False: there are no operators compiled by TVM.

    Examples
    --------
    >>> from passlib.test_utils import has_tvm_ops
    >>> has_tvm_ops()
    False
    """
    return False


def is_op_runnable() -> bool:
    """Return True: no operator needs a GPU of a certain kind.

    Examples
    --------
    >>> from passlib.test_utils import is_op_runnable
    >>> is_op_runnable()
    True
    """
    return True


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


def is_aarch64_run() -> bool:
    """Whether the processor is a 64-bit ARM.

    Examples
    --------
    >>> import platform
    >>> from passlib.test_utils import is_aarch64_run
    >>> is_aarch64_run() == (platform.machine() == "aarch64")
    True
    """
    return platform.machine() == "aarch64"
