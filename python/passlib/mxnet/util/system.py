"""Facts about the process and the machine."""

from __future__ import annotations

import os


def getenv(name: str) -> str | None:
    """Return an environment variable, None if it is not set.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.setenv("MXNET_EXAMPLE", "1")
    >>> mx.util.getenv("MXNET_EXAMPLE")
    '1'
    >>> mx.util.setenv("MXNET_EXAMPLE", None)
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or remove it if the value is None.

    Examples
    --------
    >>> import os
    >>> import passlib as mx
    >>> mx.util.setenv("MXNET_EXAMPLE", "1")
    >>> os.environ.pop("MXNET_EXAMPLE")
    '1'
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """Return 0, the number of GPUs that passlib can use.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.util.get_gpu_count()
    0
    """
    return 0
