"""The parameters of a block: arrays, or shapes and types of arrays not yet created."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from passlib.arrays import BaseSparseNDArray, NDArray, dtypes
from passlib.arrays.context import Context, require_host
from passlib.dialects import declared
from passlib.dialects.weights.params import bare_name
from passlib.errors import FormatError, PasslibError, UnsupportedError, listed, printable
from passlib.graph.node import VARIABLE
from passlib.model.graph import ModelGraph
from passlib.mxnet import nd
from passlib.mxnet.nd.files import load_weights
from passlib.mxnet.nn.initializer import Initial, check_initializer, fill
from passlib.mxnet.symbol.creation import var
from passlib.mxnet.symbol.symbol import Symbol

if TYPE_CHECKING:
    from passlib.arrays.context import Context
    from passlib.mxnet.symbol.symbol import Symbol


_ROW_SPARSE = "1"


def outputs_of(inputs: Any) -> list[Symbol]:
    """Return the outputs of a symbol.

    Raises `TypeError` if the argument is not a symbol.
    """
    require_symbol(inputs, "input")
    return list(inputs)


def require_symbol(value: Any, what: str) -> None:
    """Check that a value is a symbol.

    Raises `TypeError` otherwise, with ``what`` in the message.
    """
    if not isinstance(value, ModelGraph):
        raise TypeError(f"a block's {what} must be a Symbol, not {type(value).__name__}")


def variable_names(variables: Sequence[Any]) -> list[str]:
    """Return the names of variables that become the inputs of a block.

    Raises `TypeError` if one is not a symbol; `ValueError` if one is the output of an operator, or
    two have the same name.
    """
    names: list[str] = []
    for variable in variables:
        require_symbol(variable, "input")
        node = variable.entries[0].node
        if node.op != VARIABLE:
            raise ValueError(
                f"an input of a block must be a variable, but {node.name!r} is the output of "
                f"{node.op}"
            )
        if node.name in names:
            raise ValueError(f"two inputs of the block are named {node.name!r}")
        names.append(node.name)
    return names


def make_parameters(
    graph: Symbol, inputs: Sequence[str], params: Mapping[str, Any]
) -> dict[str, Parameter]:
    """Create a parameter for each variable that is not an input, in the order of the graph.

    Raises `ValueError` if a variable is declared as row_sparse.

    Parameters
    ----------
    params : mapping of str to Parameter or array
        Parameters and the memory of arrays are shared. Names may have the prefix ``arg:`` or
        ``aux:``.
    """
    given = {bare_name(name): value for name, value in params.items()}
    auxiliary = frozenset(graph.list_auxiliary_states())
    attributes = {node.name: node.attrs for node in graph.nodes() if node.is_variable}
    parameters = {}
    for name in graph.list_inputs():
        if name in inputs:
            continue
        grad_req = "null" if name in auxiliary else "write"
        if attributes[name].get("__storage_type__") == _ROW_SPARSE:
            raise ValueError(f"parameter {name!r} is row_sparse, which blocks do not support")
        value = given.get(name)
        if isinstance(value, Parameter):
            parameters[name] = value
        elif value is not None:
            parameters[name] = Parameter.of_array(name, value, grad_req, shared=True)
        else:
            parameters[name] = _of_attributes(name, attributes[name], grad_req)
    return parameters


def _of_attributes(name: str, attrs: Mapping[str, str], grad_req: str) -> Parameter:
    dtype, shape = declared(attrs)
    sizes = None if not shape else [max(size or 0, 0) for size in shape]
    return Parameter(name, grad_req, sizes, dtype)


_FLOAT32 = np.dtype(np.float32)


class _Deferred(NamedTuple):
    init: Initial
    random: np.random.Generator


class Parameter:
    """One weight or auxiliary state.

    Parameters
    ----------
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
        """Create a parameter on an array, without a copy.

        Parameters
        ----------
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
            ``"uniform"`` by default, see `passlib.nn.ParameterDict.initialize`.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        force_reinit : bool
            Replace existing values.
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


class ParameterDict(Mapping[str, Parameter]):
    """Parameters by name, in the order of the graph.

    Examples
    --------
    >>> import passlib as mx
    >>> weights = mx.gluon.ParameterDict({"w": mx.gluon.Parameter("w", shape=(2,))})
    >>> weights.initialize("zeros")
    >>> weights["w"].data().asnumpy()
    array([0., 0.], dtype=float32)
    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = dict(parameters)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        lines = "".join(f"  {parameter}\n" for parameter in self.values())
        return f"(\n{lines})"

    def initialize(
        self,
        init: Initial | None = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        """Set initial values of the parameters that have none.

        Parameters
        ----------
        init : {"uniform", "normal", "zeros", "ones"} or callable, optional
            ``"uniform"`` by default: between -0.07 and 0.07, except biases, betas and means,
            which are 0, and gammas and variances, which are 1; names identify them. A function
            is called with name, shape and type.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        verbose : bool
            Ignored; accepted for compatibility with MXNet.
        force_reinit : bool
            Replace existing values.
        seed : int, optional
            Seed of the random values, for reproducible ones.

        Raises
        ------
        ValueError
            The initializer is unknown.
        UnsupportedError
            A GPU.
        """
        random = np.random.default_rng(seed)
        for parameter in self.values():
            parameter.initialize(init, ctx, force_reinit, random=random)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all parameters to a device, which must be the CPU.

        Raises
        ------
        UnsupportedError
            The device is a GPU.
        """
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """Return the devices of the parameters, each once."""
        return list(dict.fromkeys(ctx for p in self.values() for ctx in p.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of every parameter: ``setattr("grad_req", "null")``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    def save(self, filename: str | os.PathLike[str]) -> None:
        """Write all values to a .params file, with names without prefixes.

        Raises
        ------
        PasslibError
            A parameter has no values yet.
        """
        for parameter in self.values():
            if parameter.array is None:
                raise parameter.missing()
        nd.save(filename, {name: parameter.array for name, parameter in self.items()})

    def load(
        self,
        filename: str | os.PathLike[str],
        ctx: Context | Sequence[Context] | None = None,
        allow_missing: bool = False,
        ignore_extra: bool = False,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Read values from a file; if it does not fit, nothing changes.

        Parameters
        ----------
        filename : path-like
            .params, .npz or .safetensors; names with ``arg:`` and ``aux:`` or without.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        allow_missing : bool
            Leave parameters that the file does not contain unchanged.
        ignore_extra : bool
            Ignore arrays in the file that are not parameters.
        cast_dtype : bool
            Allow element types other than those of the parameters.
        dtype_source : {"current", "saved"}
            Whether to keep the parameter's or the file's element type then.

        Raises
        ------
        FormatError
            The file is damaged, a parameter is missing, an array is not a parameter, or a shape
            or type differs.
        ValueError
            ``dtype_source`` is unknown.
        UnsupportedError
            The device is a GPU.
        """
        if dtype_source not in ("current", "saved"):
            raise ValueError(f"dtype_source must be 'current' or 'saved', not {dtype_source!r}")
        if ctx is not None:
            self.reset_ctx(ctx)
        where = os.fspath(filename)
        content = _without_prefixes(load_weights(filename), where)
        missing = [name for name in self if name not in content]
        extra = [name for name in content if name not in self]
        if missing and not allow_missing:
            raise FormatError(
                f"{where}: parameter {_quoted(missing)} is missing; the file has "
                f"{_quoted(content)}. Pass allow_missing=True to leave it without values, or name "
                "it as an input if it is one"
            )
        if extra and not ignore_extra:
            raise FormatError(
                f"{where}: {_quoted(extra)} is not a parameter; the parameters are "
                f"{_quoted(self)}. Pass ignore_extra=True to ignore it"
            )
        chosen = {name: array for name, array in content.items() if name in self}
        try:
            for name, array in chosen.items():
                self[name].check(array, cast=cast_dtype)
        except ValueError as error:
            raise FormatError(f"{where}: {error}") from error
        for name, array in chosen.items():
            kind = self[name].dtype
            keep = dtype_source == "saved" or kind is None or kind == array.dtype
            self[name].take(array if keep else array.astype(kind))


def _without_prefixes(content: Mapping[str, Any], where: str) -> dict[str, Any]:
    bare: dict[str, Any] = {}
    for key, array in content.items():
        name = bare_name(key)
        if name in bare:
            raise FormatError(f"{where}: {name!r} is in the file twice, also as {key!r}")
        bare[name] = array
    return bare


def _quoted(names: Iterable[str]) -> str:
    return listed([repr(name) for name in names], 6)
