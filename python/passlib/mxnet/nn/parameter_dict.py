"""All parameters of a block, by name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib.dialects.weights.names import bare_name
from passlib.errors import FormatError, listed
from passlib.mxnet import nd
from passlib.mxnet.nd.weights import load_weights
from passlib.mxnet.nn.initializers import Initial
from passlib.mxnet.nn.parameter import Parameter

if TYPE_CHECKING:
    from passlib.arrays.context import Context


class ParameterDict(Mapping[str, Parameter]):
    """Parameters by name, in the order of the graph.

    Parameters
    ----------
    parameters : mapping of str to Parameter

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
