"""Binding a symbol to arrays, for scripts that use ``bind``, ``simple_bind`` and ``eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from passlib import dtypes
from passlib.context import Context, require_host
from passlib.errors import GraphError
from passlib.execution import Executor, no_gradients, variable_types
from passlib.nd import BaseSparseNDArray, NDArray, zeros

if TYPE_CHECKING:
    from passlib.symbol import Symbol

__all__ = ["Executor", "bind", "evaluate", "simple_bind"]

_REQUESTS = ("null", "write", "add")


def bind(
    symbol: Symbol,
    ctx: Context | None,
    args: Sequence[Any] | Mapping[str, Any],
    args_grad: Sequence[Any] | Mapping[str, Any] | None = None,
    grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    aux_states: Sequence[Any] | Mapping[str, Any] | None = None,
    group2ctx: Mapping[str, Context] | None = None,
    shared_exec: Executor | None = None,
) -> Executor:
    """Bind a symbol to arrays, which the executor reads and `Executor.forward` writes to.

    Parameters
    ----------
    symbol : Symbol
    ctx : Context or None
        None is the current one.
    args, aux_states : sequence of arrays, or mapping of str to array
        One for each argument and auxiliary state; names that the symbol does not have are
        passed over.
    args_grad : None
        Gradients are not computed.
    grad_req : str, sequence or mapping
        Checked, and without effect.
    group2ctx : mapping, optional
        Without effect: everything is on the CPU.
    shared_exec : Executor, optional
        Without effect: there is no memory to share.

    Returns
    -------
    Executor

    Raises
    ------
    ValueError
        An array is missing, there are too many, or ``grad_req`` is unknown.
    TypeError
        Something is not an array.
    UnsupportedError
        Gradients, or a GPU.
    """
    context = require_host(ctx, "an executor")
    for place in (group2ctx or {}).values():
        require_host(place, "part of an executor")
    _check_requests(grad_req)
    given = args_grad.values() if isinstance(args_grad, Mapping) else args_grad or ()
    if any(array is not None for array in given):
        raise no_gradients("args_grad")
    return Executor(
        symbol,
        context,
        _by_name("args", args, symbol.list_arguments()),
        _by_name("aux_states", aux_states or {}, symbol.list_auxiliary_states()),
    )


def simple_bind(
    symbol: Symbol,
    ctx: Context | None,
    grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    type_dict: Mapping[str, Any] | None = None,
    /,
    **shapes: Sequence[int],
) -> Executor:
    """Bind a symbol to new arrays of zeros.

    Parameters
    ----------
    symbol : Symbol
    ctx : Context or None
        None is the current one.
    grad_req : str, sequence or mapping
        Checked, and without effect: gradients are not computed.
    type_dict : mapping of str to dtype, optional
        Element types of variables; float32 where nothing else follows.
    **shapes : tuple of int
        Shapes of the inputs; those of the weights follow.

    Returns
    -------
    Executor

    Raises
    ------
    GraphError
        The shapes contradict each other, or leave one unknown.
    UnsupportedError
        A GPU.
    """
    context = require_host(ctx, "an executor")
    _check_requests(grad_req)
    types = {name: dtypes.as_dtype(kind) for name, kind in (type_dict or {}).items()}
    found = variable_types(symbol, shapes, types)

    def make(names: Sequence[str]) -> dict[str, Any]:
        arrays = {}
        for name in names:
            shape, dtype = found[name]
            if shape is None:
                raise GraphError(
                    f"the shape of {name!r} does not follow from those of "
                    f"{', '.join(shapes) or 'nothing'}; give it as {name}=(...)"
                )
            arrays[name] = zeros(shape, context, dtype)
        return arrays

    args = make(symbol.list_arguments())
    return Executor(symbol, context, args, make(symbol.list_auxiliary_states()))


def evaluate(symbol: Symbol, ctx: Context | None = None, /, **arrays: Any) -> list[NDArray]:
    """Compute a symbol's outputs once.

    Parameters
    ----------
    symbol : Symbol
    ctx : Context, optional
        The current one by default.
    **arrays : array
        One for each variable, auxiliary states included.

    Returns
    -------
    list of NDArray

    Raises
    ------
    ValueError
        An array is missing.
    UnsupportedError
        A GPU, or something in the graph has no faithful lowering.
    PasslibError
        ONNX Runtime is absent, or failed.
    """
    return bind(symbol, ctx, arrays, aux_states=arrays).forward()


def _by_name(
    what: str, given: Sequence[Any] | Mapping[str, Any], names: Sequence[str]
) -> dict[str, Any]:
    if isinstance(given, Mapping):
        missing = [name for name in names if name not in given]
        if missing:
            raise ValueError(f"{what} has no array for {', '.join(map(repr, missing))}")
        pairs = [(name, given[name]) for name in names]
    elif isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(
                f"{what} has {len(given)} arrays, but the symbol wants {len(names)}: "
                f"{', '.join(names) or 'none'}"
            )
        pairs = list(zip(names, given, strict=True))
    else:
        raise TypeError(f"{what} is of type {type(given).__name__}, not a list or a dictionary")
    arrays: dict[str, Any] = {}
    for name, array in pairs:
        if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
            raise TypeError(
                f"{what}: {name!r} is of type {type(array).__name__}, not an array; make one with "
                "passlib.nd.array"
            )
        plain = isinstance(array, np.ndarray) and not isinstance(array, NDArray)
        arrays[name] = np.asarray(array).view(NDArray) if plain else array
    return arrays


def _check_requests(grad_req: str | Sequence[str] | Mapping[str, str]) -> None:
    if isinstance(grad_req, str):
        values: Sequence[str] = [grad_req]
    else:
        values = list(grad_req.values() if isinstance(grad_req, Mapping) else grad_req)
    for value in values:
        if value not in _REQUESTS:
            raise ValueError(f"grad_req {value!r} is none of {', '.join(_REQUESTS)}")
