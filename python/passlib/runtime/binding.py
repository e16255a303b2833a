"""Binding a symbol to arrays, for scripts that use ``bind``, ``simple_bind`` and ``eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays import BaseSparseNDArray, NDArray
from passlib.arrays.context import Context, require_host
from passlib.arrays.creation import zeros
from passlib.arrays.dtypes import as_shapes, as_types
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.plain import PlainGraph
from passlib.runtime.executor import Executor, Gradients, declared_types, variable_types

_REQUESTS = ("null", "write", "add")


def bind(
    symbol: PlainGraph,
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
    ctx : Context or None
        None is the current one.
    args, aux_states : sequence of arrays, or mapping of str to array
        One for each argument and auxiliary state; unknown names are
        ignored.
    args_grad : sequence of arrays, or mapping of str to array, optional
        Where `Executor.backward` writes the gradients of the arguments; None, or missing in the
        mapping, for unwanted gradients. `Executor.backward` computes a gradient only if all
        operators between the argument and the outputs belong to libraries.
    grad_req : {"write", "add", "null"}, or a sequence or mapping of these
        Whether a gradient replaces what is in its array, is added to it, or is not computed: for
        all arguments or for each. Those missing in a mapping have ``"null"``.
    group2ctx : mapping, optional
        Without effect: everything is on the CPU.
    shared_exec : Executor, optional
        Without effect: there is no memory to share.

    Raises
    ------
    ValueError
        An array is missing, there are too many, ``grad_req`` is unknown, or an array for a gradient
        has another shape than its argument.
    TypeError
        Something is not an array.
    UnsupportedError
        An array for a gradient is sparse, or a GPU is asked for.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.var("a") + mx.sym.var("b")
    >>> executor = mx.executor.bind(y, mx.cpu(), [mx.nd.ones((2,)), mx.nd.ones((2,))])
    >>> executor.forward()[0].asnumpy()
    array([2., 2.], dtype=float32)
    """
    context = require_host(ctx, "an executor")
    for place in (group2ctx or {}).values():
        require_host(place, "part of an executor")
    names = symbol.list_arguments()
    requests = _requests(grad_req, names)
    made = _by_name("args", args, names)
    arrays = _gradient_arrays(args_grad, made)
    wanted = any(array is not None for array in arrays.values())
    return Executor(
        symbol,
        context,
        made,
        _by_name("aux_states", aux_states or {}, symbol.list_auxiliary_states()),
        Gradients(symbol, arrays, requests) if wanted else None,
    )


def simple_bind(
    symbol: PlainGraph,
    ctx: Context | None,
    grad_req: str | Sequence[str] | Mapping[str, str] = "write",
    type_dict: Mapping[str, Any] | None = None,
    /,
    **shapes: Sequence[int],
) -> Executor:
    """Bind a symbol to new arrays of zeros.

    Parameters
    ----------
    ctx : Context or None
        None is the current one.
    grad_req : {"write", "add", "null"}, or a sequence or mapping of these
        See `bind`.
    type_dict : mapping of str to dtype, optional
        Element types of variables; where it has none, the type that the variable declares, or
        float32 where nothing else follows.
    **shapes : tuple of int
        Shapes of the inputs; those of the weights follow. As in MXNet, keywords that name no
        variable of the symbol are ignored, and so is None.

    Raises
    ------
    GraphError
        The shapes contradict each other, or leave one unknown.
    UnsupportedError
        A GPU.

    Examples
    --------
    >>> import passlib as mx
    >>> y = mx.sym.FullyConnected(mx.sym.var("x"), num_hidden=2, name="fc")
    >>> mx.executor.simple_bind(y, mx.cpu(), x=(1, 3)).arg_dict["fc_weight"].shape
    (2, 3)
    """
    context = require_host(ctx, "an executor")
    requests = _requests(grad_req, symbol.list_arguments())
    types = as_types("type_dict", type_dict)
    variables = {*symbol.list_arguments(), *symbol.list_auxiliary_states()}
    named = {k: v for k, v in shapes.items() if k in variables and v is not None}
    declared = {**declared_types(symbol), **types}
    found = variable_types(symbol, as_shapes("simple_bind", named), declared)

    def make(names: Sequence[str]) -> dict[str, Any]:
        arrays = {}
        for name in names:
            shape, dtype = found[name]
            if shape is None:
                raise GraphError(
                    f"the shape of {name!r} does not follow from those of "
                    f"{', '.join(named) or 'nothing'}; give it as {name}=(...)"
                )
            arrays[name] = zeros(shape, context, dtype)
        return arrays

    args = make(symbol.list_arguments())
    aux = make(symbol.list_auxiliary_states())
    wanted = [name for name in args if requests[name] != "null"]
    arrays = {name: zeros(args[name].shape, context, args[name].dtype) for name in wanted}
    gradients = Gradients(symbol, arrays, requests) if wanted else None
    return Executor(symbol, context, args, aux, gradients)


def evaluate(symbol: PlainGraph, ctx: Context | None = None, /, **arrays: Any) -> list[NDArray]:
    """Compute a symbol's outputs once.

    Parameters
    ----------
    ctx : Context, optional
        The current one by default.
    **arrays : array
        One for each variable, auxiliary states included.

    Raises
    ------
    ValueError
        An array is missing.
    UnsupportedError
        A GPU, or something in the graph has no faithful lowering.
    PasslibError
        ONNX Runtime is absent, or failed.

    Examples
    --------
    >>> import passlib as mx
    >>> mx.executor.evaluate(mx.sym.exp(mx.sym.var("x")), x=mx.nd.zeros((2,)))[0].asnumpy()
    array([1., 1.], dtype=float32)
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
    else:
        pairs = list(zip(names, _of_length(what, given, names), strict=True))
    return {name: _as_array(what, name, array) for name, array in pairs}


def _of_length(what: str, given: Any, names: Sequence[str]) -> Sequence[Any]:
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{what} is of type {type(given).__name__}, not a list or a dictionary")
    if len(given) != len(names):
        raise ValueError(
            f"{what} has {len(given)} arrays, but the symbol wants {len(names)}: "
            f"{', '.join(names) or 'none'}"
        )
    return given


def _as_array(what: str, name: str, array: Any) -> Any:
    if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
        raise TypeError(
            f"{what}: {name!r} is of type {type(array).__name__}, not an array; make one with "
            "passlib.nd.array"
        )
    plain = isinstance(array, np.ndarray) and not isinstance(array, NDArray)
    return np.asarray(array).view(NDArray) if plain else array


def _requests(
    grad_req: str | Sequence[str] | Mapping[str, str], names: Sequence[str]
) -> dict[str, str]:
    """Return the gradient request of each argument."""
    if isinstance(grad_req, str):
        requests = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, Mapping):
        requests = {**dict.fromkeys(names, "null"), **grad_req}
    elif len(grad_req) == len(names):
        requests = dict(zip(names, grad_req, strict=True))
    else:
        raise ValueError(
            f"grad_req has {len(grad_req)} elements, the symbol {len(names)} arguments"
        )
    for value in requests.values():
        if value not in _REQUESTS:
            raise ValueError(f"grad_req {value!r} is none of {', '.join(_REQUESTS)}")
    return requests


def _gradient_arrays(
    given: Sequence[Any] | Mapping[str, Any] | None, args: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the array for the gradient of each argument, or None."""
    if not isinstance(given, Mapping):
        listed = _of_length("args_grad", given or [None] * len(args), list(args))
        given = dict(zip(args, listed, strict=True))
    arrays: dict[str, Any] = {}
    for name, value in args.items():
        array = given.get(name)
        if isinstance(array, BaseSparseNDArray):
            raise UnsupportedError(f"args_grad: the gradient of {name!r} cannot be a sparse array")
        arrays[name] = None if array is None else _as_array("args_grad", name, array)
        if array is not None and array.shape != value.shape:
            raise ValueError(
                f"args_grad: the array of {name!r} has shape {array.shape}, the argument "
                f"{value.shape}"
            )
    return arrays
