"""Devices as MXNet names them; passlib keeps every array in the memory of the host."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import Final

from passlib.errors import UnsupportedError

DEVICE_TYPES: Final = MappingProxyType({"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5})
"""Device types and their numbers in .params files and ``__ctx__`` fields."""


class Context:
    """A device: a type and a number. Immutable, hashable, usable in a ``with`` statement.

    Parameters
    ----------
    device_type : str or Context
        A key of `DEVICE_TYPES`, or a context to copy.
    device_id : int
        From 0.

    Raises
    ------
    ValueError
        The device type is not one of MXNet's, or the number is negative.

    Examples
    --------
    >>> from passlib import cpu, current_context
    >>> with cpu(1):
    ...     current_context()
    cpu(1)
    """

    __slots__ = ("_device_id", "_device_type")

    def __init__(self, device_type: str | Context, device_id: int = 0) -> None:
        if isinstance(device_type, Context):
            device_id = device_type.device_id
            device_type = device_type.device_type
        if device_type not in DEVICE_TYPES:
            known = ", ".join(DEVICE_TYPES)
            raise ValueError(f"unknown device type {device_type!r}; the types are {known}")
        if device_id < 0:
            raise ValueError(f"device number {device_id} of {device_type!r} is negative")
        self._device_type = device_type
        self._device_id = int(device_id)

    @property
    def device_type(self) -> str:
        """Name of the device type."""
        return self._device_type

    @property
    def device_typeid(self) -> int:
        """MXNet's number for the device type."""
        return DEVICE_TYPES[self._device_type]

    @property
    def device_id(self) -> int:
        """Number of the device, from 0."""
        return self._device_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Context):
            return NotImplemented
        return (self._device_type, self._device_id) == (other._device_type, other._device_id)

    def __hash__(self) -> int:
        return hash((self._device_type, self._device_id))

    def __repr__(self) -> str:
        return f"{self._device_type}({self._device_id})"

    def __reduce__(self) -> tuple[type[Context], tuple[str, int]]:
        return Context, (self._device_type, self._device_id)

    def __enter__(self) -> Context:
        _active.stack.append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _active.stack.pop()


_DEFAULT: Final = Context("cpu", 0)


class _Active(threading.local):
    def __init__(self) -> None:
        self.stack: list[Context] = []
        self.default = _DEFAULT


_active = _Active()


def cpu(device_id: int = 0) -> Context:
    """Return the context of the host's processor.

    MXNet lets scripts distinguish several by number; they all share the same memory.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.nd.ones((2,), ctx=pl.cpu()).context
    cpu(0)
    """
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """Return the context of page-locked host memory, which here is ordinary host memory.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.cpu_pinned()
    cpu_pinned(0)
    """
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """Return the context of a GPU, where nothing can be placed: see `require_host`.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.gpu(1).device_type
    'gpu'
    """
    return Context("gpu", device_id)


def current_context() -> Context:
    """Return the context of the innermost ``with`` block of this thread, else the default.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.current_context()
    cpu(0)
    """
    return _active.stack[-1] if _active.stack else _active.default


def set_default_context(ctx: Context) -> None:
    """Set the context outside of ``with`` blocks in this thread; at first it is ``cpu(0)``.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.test_utils.set_default_context(mx.cpu(1))
    >>> mx.current_context()
    cpu(1)
    >>> mx.test_utils.set_default_context(mx.cpu())
    """
    _active.default = ctx


def num_gpus() -> int:
    """Return 0, the number of GPUs that passlib can use.

    ``gpu() if num_gpus() else cpu()`` in a script therefore selects the CPU.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.gpu() if mx.context.num_gpus() else mx.cpu()
    cpu(0)
    """
    return 0


def gpu_memory_info(device_id: int = 0) -> tuple[int, int]:
    """Raise UnsupportedError: there is no GPU whose memory could be measured.

    Examples
    --------
    >>> import passlib as mx
    >>> try:
    ...     mx.context.gpu_memory_info()
    ... except mx.MXNetError as error:
    ...     print(type(error).__name__)
    UnsupportedError
    """
    raise UnsupportedError(
        f"gpu({device_id}): passlib uses the CPU only, so there is no GPU memory"
    )


def require_host(context: Context | None, what: str) -> Context:
    """Return a context, by default the current one; refuse a GPU for ``what``.

    Raises `UnsupportedError` if the context is a GPU.
    """
    chosen = current_context() if context is None else context
    if chosen.device_type == "gpu":
        raise UnsupportedError(
            f"{what} was requested on {chosen}, but passlib keeps arrays and runs models on the "
            "CPU only; use passlib.cpu()"
        )
    return chosen
