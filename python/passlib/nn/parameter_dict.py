"""All parameters of a block, by name."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib import nd
from passlib.dialects.mxnet.files import ARG, AUX
from passlib.errors import FormatError
from passlib.nd.weights import load_weights
from passlib.nn.initializers import Initializer
from passlib.nn.parameter import Parameter

if TYPE_CHECKING:
    from passlib.arrays.context import Context

__all__ = ["ParameterDict"]


class ParameterDict(Mapping[str, Parameter]):
    """Parameters by name, in the order of the graph.

    Parameters
    ----------
    parameters : mapping of str to Parameter
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
        init: Initializer | None = None,
        ctx: Context | Sequence[Context] | None = None,
        verbose: bool = False,
        force_reinit: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        """Make first values for the parameters that have none.

        Parameters
        ----------
        init : {"uniform", "normal", "zeros", "ones"} or callable, optional
            ``"uniform"`` by default: between -0.07 and 0.07; biases, betas and means 0, gammas
            and variances 1, by their names. A function is given name, shape and type.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        verbose : bool
            Accepted for MXNet's sake.
        force_reinit : bool
            Replace values that are there already.
        seed : int, optional
            Makes the random values the same at each call.

        Raises
        ------
        ValueError
            An unknown initialiser.
        UnsupportedError
            A GPU.
        """
        random = np.random.default_rng(seed)
        for parameter in self.values():
            parameter.initialize(init, ctx, force_reinit, random=random)

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move all to a device, of which there is one.

        Raises
        ------
        UnsupportedError
            A GPU.
        """
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """Give the devices that the parameters are on, each once."""
        return list(dict.fromkeys(ctx for p in self.values() for ctx in p.list_ctx()))

    def setattr(self, name: str, value: Any) -> None:
        """Set an attribute of every parameter: ``setattr("grad_req", "null")``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    def save(self, filename: str | os.PathLike[str]) -> None:
        """Write all values to a .params file, under their bare names.

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
        """Read values from a file; where it does not fit, nothing changes.

        Parameters
        ----------
        filename : path-like
            .params, .npz or .safetensors; names with ``arg:`` and ``aux:`` or without.
        ctx : Context or sequence of Context, optional
            Only the CPU.
        allow_missing : bool
            Leave parameters as they are that the file does not have.
        ignore_extra : bool
            Pass over arrays in the file that are no parameters.
        cast_dtype : bool
            Allow other element types than those of the parameters.
        dtype_source : {"current", "saved"}
            Which element type counts then.

        Raises
        ------
        FormatError
            The file is damaged, lacks a parameter, has others, or a shape or type differs.
        ValueError
            An unknown ``dtype_source``.
        UnsupportedError
            A GPU.
        """
        if dtype_source not in ("current", "saved"):
            raise ValueError(f"dtype_source is 'current' or 'saved', not {dtype_source!r}")
        if ctx is not None:
            self.reset_ctx(ctx)
        where = os.fspath(filename)
        content = _without_prefixes(load_weights(filename), where)
        missing = [name for name in self if name not in content]
        extra = [name for name in content if name not in self]
        if missing and not allow_missing:
            raise FormatError(
                f"{where}: parameter {_shorten(missing)} is missing; the file has "
                f"{_shorten(list(content))}. Give allow_missing=True to leave it without values, "
                "or name it as an input if it is one"
            )
        if extra and not ignore_extra:
            raise FormatError(
                f"{where}: {_shorten(extra)} is no parameter; the parameters are "
                f"{_shorten(list(self))}. Give ignore_extra=True to pass over it"
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
        name = key[len(ARG) :] if key.startswith((ARG, AUX)) else key
        if name in bare:
            raise FormatError(f"{where}: {name!r} is in the file twice, as {key!r} too")
        bare[name] = array
    return bare


def _shorten(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(map(repr, names[:most])) or "nothing"
    return shown + (f", ... ({len(names)} in all)" if len(names) > most else "")
