"""The parameters of a block: each an array, or the known facts about one not yet made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from passlib.arrays import BaseSparseNDArray, NDArray, dtypes
from passlib.arrays.context import Context, require_host
from passlib.errors import PasslibError, UnsupportedError, printable
from passlib.mxnet.nn.initializers import Initial, check_initializer, fill
from passlib.mxnet.symbol.variables import var

if TYPE_CHECKING:
    from passlib.mxnet.symbol.symbol import Symbol

_FLOAT32 = np.dtype(np.float32)


class _Deferred(NamedTuple):
    init: Initial
    random: np.random.Generator


class Parameter:
    """One weight or auxiliary state.

    Parameters
    ----------
    name : str
    grad_req : {"write", "add", "null"}
        Kept for compatibility with MXNet: ``"null"`` marks parameters that training would not
        change.
    shape : sequence of int, optional
        A size of 0 is unknown.
    dtype : dtype-like, optional
        By default inferred from the inputs, else float32.
    init : Initial, optional
        Takes precedence over the argument of `initialize`.

    Examples
    --------
    >>> import passlib as mx
    >>> weight = mx.gluon.Parameter("weight", shape=(2, 3))
    >>> weight.initialize("ones")
    >>> float(weight.data().sum())
    6.0
    """

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        init: Initial | None = None,
    ) -> None:
        self.name = name
        self.grad_req = grad_req
        self._shape = None if shape is None else tuple(int(size) for size in shape)
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._init = None if init is None else check_initializer(init)
        self._array: Any = None
        self._deferred: _Deferred | None = None
        self._shared = False

    @classmethod
    def of_array(cls, name: str, array: Any, grad_req: str, *, shared: bool) -> Parameter:
        """Make a parameter of an array, without a copy.

        Parameters
        ----------
        name : str
        array : NDArray, numpy.ndarray or sparse array
        grad_req : str
        shared : bool
            Whether other objects hold the array and may write to it.
        """
        parameter = cls(name, grad_req, array.shape, array.dtype)
        parameter._array = array.view(NDArray) if isinstance(array, np.ndarray) else array
        parameter._shared = shared
        return parameter

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape; a size of 0 is unknown, None if the whole shape is."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Element type; None until it is inferred from the inputs."""
        return self._dtype

    @property
    def array(self) -> Any:
        """The array for reading only, or None if there is none yet.

        Callers that may write to it must take it from `data`, so that blocks see the change.
        """
        return self._array

    @property
    def shared(self) -> bool:
        """Whether an outside object holds the array, so that its elements may change any time."""
        return self._shared

    @property
    def deferred(self) -> bool:
        """Whether `initialize` was called and only the shape is missing."""
        return self._deferred is not None

    def data(self, ctx: Context | None = None) -> Any:
        """Return the array; the next call of the block uses the values written to it.

        From then on the block reads the array at each call, which may take twice as long as with
        compiled-in weights. `set_data` has no such cost.

        Parameters
        ----------
        ctx : Context, optional
            Only the CPU.

        Returns
        -------
        NDArray or sparse array

        Raises
        ------
        PasslibError
            There is no array yet.
        UnsupportedError
            A GPU.
        """
        require_host(ctx, f"parameter {self.name!r}")
        if self._array is None:
            raise self.missing()
        self._shared = True
        return self._array

    def list_data(self) -> list[Any]:
        """Return the arrays of all devices: one."""
        return [self.data()]

    def list_ctx(self) -> list[Context]:
        """Return the devices: one.

        Raises
        ------
        PasslibError
            There is no array yet.
        """
        if self._array is None:
            raise self.missing()
        return [self._array.context]

    def missing(self) -> PasslibError:
        """Return the error that states why there is no array."""
        if self.deferred:
            why = f"its shape {self._shape or ''} is unknown until the block is called"
        else:
            why = "call initialize() on the block or load its parameters first"
        return PasslibError(f"parameter {self.name!r} has no values yet: {why}")

    def check(self, array: Any, *, cast: bool) -> None:
        """Check that an array can become the value of this parameter.

        Parameters
        ----------
        array : array
        cast : bool
            Whether another element type is allowed.

        Raises
        ------
        TypeError
            The argument is not an array.
        ValueError
            It has another shape or, without ``cast``, another element type.
        """
        if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
            raise TypeError(f"parameter {self.name!r}: {type(array).__name__} is not an array")
        want = self._shape
        if want is not None and (
            len(want) != len(array.shape)
            or any(size not in (0, given) for size, given in zip(want, array.shape, strict=True))
        ):
            raise ValueError(f"parameter {self.name!r} has shape {want}, not {array.shape}")
        if not cast and self._dtype is not None and array.dtype != self._dtype:
            raise ValueError(
                f"parameter {self.name!r} is {self._dtype}, not {array.dtype}; convert the array, "
                "or allow it with cast_dtype=True"
            )

    def set_data(self, data: Any) -> None:
        """Copy new values in, converted to the element type of the parameter.

        Parameters
        ----------
        data : array

        Raises
        ------
        ValueError
            It has another shape.
        """
        self.check(data, cast=True)
        dense = data.asnumpy() if isinstance(data, BaseSparseNDArray) else data
        if self._shared and isinstance(self._array, np.ndarray) and self._array.flags.writeable:
            np.copyto(self._array, dense, casting="unsafe")
            return
        plain = isinstance(self._array, BaseSparseNDArray)
        copy = np.array(dense, self._dtype or data.dtype, subok=False).view(NDArray)
        self.take(copy.tostype(self._array.stype) if plain else copy)

    def take(self, array: Any) -> None:
        """Set the value to an array that no other object holds, without a copy."""
        self._array = array.view(NDArray) if isinstance(array, np.ndarray) else array
        self._shape, self._dtype = tuple(array.shape), array.dtype
        self._deferred = None
        self._shared = False

    def initialize(
        self,
        init: Initial | None = None,
        ctx: Context | Sequence[Context] | None = None,
        force_reinit: bool = False,
        *,
        random: np.random.Generator | None = None,
    ) -> None:
        """Set initial values now, or once the shape is known.

        Parameters
        ----------
        init : Initial, optional
            ``"uniform"`` by default, see `passlib.nn.initializers.fill`.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        force_reinit : bool
            Replace existing values.
        random : numpy.random.Generator, optional
        """
        self.reset_ctx(ctx)
        if self._array is not None and not force_reinit:
            return
        chosen = check_initializer(self._init or init or "uniform")
        self._deferred = _Deferred(chosen, random or np.random.default_rng())
        if self._shape is not None and 0 not in self._shape:
            self.finish(self._shape, self._dtype or _FLOAT32)

    def finish(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Set the initial values, once shape and element type are known."""
        assert self._deferred is not None
        init, random = self._deferred
        self.take(fill(self.name, shape, self._dtype or dtype, init, random))

    def reset_ctx(self, ctx: Context | Sequence[Context] | None) -> None:
        """Move to a device, which must be the CPU.

        Raises
        ------
        UnsupportedError
            The device is a GPU.
        """
        places = [ctx] if ctx is None or isinstance(ctx, Context) else ctx
        for place in places:
            require_host(place, f"parameter {self.name!r}")

    def cast(self, dtype: Any) -> None:
        """Convert the values to another element type."""
        self._dtype = dtypes.as_dtype(dtype)
        if self._array is not None:
            self.take(self._array.astype(self._dtype))

    def var(self) -> Symbol:
        """Return the variable of this parameter for a graph."""
        return var(self.name, shape=self._shape, dtype=self._dtype)

    def grad(self, ctx: Context | None = None) -> NoReturn:
        """Raise an error: passlib does not train.

        Raises
        ------
        UnsupportedError
            Always.
        """
        raise UnsupportedError(f"parameter {self.name!r}: gradients are not computed")

    def __repr__(self) -> str:
        return f"Parameter {printable(self.name)} (shape={self._shape}, dtype={self._dtype})"
