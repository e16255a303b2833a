"""MXNet's operators as functions of arrays: one node, lowered and kept as a compiled session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np

import passlib._core as _core
from passlib.arrays.context import Context, current_context, require_host
from passlib.arrays.ndarray import NDArray
from passlib.arrays.shape_mode import is_np_shape
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import infer
from passlib.errors import PasslibError, did_you_mean
from passlib.files.optional import require
from passlib.graph import scope
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.lowering import Shape, TypeSpec
from passlib.mxnet import schema
from passlib.mxnet.nd import sampling
from passlib.mxnet.schema import calls as namespaces
from passlib.mxnet.schema.calls import read_call
from passlib.mxnet.symbol.composition import create
from passlib.mxnet.symbol.symbol import Symbol
from passlib.runtime.session import Session
from passlib.runtime.sessions import Cache, as_dense
from passlib.runtime.settings import Settings

_OF_ZERO: Final = """
BlockGrad _copy abs arcsin arcsinh arctan arctanh cbrt ceil degrees expm1 fix floor log1p make_loss
negative radians relu rint round sign sin sinh sqrt square tan tanh trunc zeros_like
"""
"""Functions of single elements that are 0 at 0."""

_OF_EQUAL: Final = frozenset(("add_n", "elemwise_add", "elemwise_mul", "elemwise_sub"))
"""Operators that give arrays of a kind if all inputs are of that kind."""

_OF_CSR: Final = frozenset(("Concat", "slice"))


def kept_storage(operator: str, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> str | None:
    """Return the storage type of the result; None for a dense one.

    Parameters
    ----------
    operator : str
        Registered name.
    """
    kinds = {array.stype if isinstance(array, BaseSparseNDArray) else None for array in inputs}
    if operator == "dot" and inputs and getattr(inputs[0], "stype", "") == "csr":
        transposed = str(attributes.get("transpose_a", False)) in ("True", "1", "true")
        return "row_sparse" if transposed and len(kinds) == 2 else None
    if len(kinds) != 1:
        return None
    kind: str | None = kinds.pop()
    if operator == "clip":
        within = float(attributes["a_min"]) <= 0 <= float(attributes["a_max"])
        return kind if within else None
    if operator in _OF_ZERO.split() or operator in _OF_EQUAL:
        return kind
    return kind if operator in _OF_CSR and kind == "csr" else None


ARRAYS: Final = (np.ndarray, BaseSparseNDArray)
"""The classes of arrays that operators take."""

_KEPT: Final = 512
_KEPT_CALLS: Final = 4096
_LARGE: Final = 1 << 16
"""Number of elements from which on an operator runs on several threads. Each session has its own,
which take longer to start than a small operator takes to run."""


class _Compiled(NamedTuple):
    """An operator as a session; None if it cannot be compiled for arrays of any size."""

    session: Session | None


_by_rank: Final[Cache[_Compiled]] = Cache(_KEPT)
_by_shape: Final[Cache[Session]] = Cache(_KEPT_CALLS)
"""Sessions by the shapes that were found to fit, most of them shared between shapes."""


class _Request(NamedTuple):
    """An operator to apply: its inputs and attributes."""

    op: str
    names: tuple[str, ...] | None
    arrays: list[np.ndarray[Any, Any]]
    attributes: Mapping[str, Any]


def operator_names(namespace: str = "") -> list[str]:
    """Return the names of a namespace's functions: ``""``, ``"contrib"``, ``"_internal"``, ..."""
    return sorted(namespaces.operator_names(namespace))


def find(name: str, namespace: str = "") -> Callable[..., Any]:
    """Return the function that applies an operator of MXNet to arrays.

    Raises `AttributeError` if the namespace has no such operator.

    Parameters
    ----------
    name : str
        As MXNet's ``mx.nd`` spells it.
    namespace : str
        ``""`` for ``nd`` itself, or another of MXNet's.
    """
    registered = namespaces.registered_name(name, namespace)
    if registered is None:
        hint = did_you_mean(name, operator_names(namespace))
        where = f"nd.{namespace}" if namespace else "nd"
        raise AttributeError(f"{where} has no {name!r}{hint}")
    return _function(name, namespace, registered)


@cache
def _function(name: str, namespace: str, registered: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return invoke(registered, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "passlib.nd" + (f".{namespace}" if namespace else "")
    function.__doc__ = (
        f"Apply the operator {registered} to arrays.\n\n"
        "Takes the inputs, then the declared attributes, by position or keyword, as the function "
        f"of this name in passlib.sym; also ``out``, an array or a list of arrays for the results."
    )
    return function


def invoke(op: str, *args: Any, **kwargs: Any) -> Any:
    """Apply an operator of MXNet to arrays.

    Raises `FormatError` if the file of an array was changed after it was loaded; `GraphError` if
    the arrays do not fit together, or an attribute is not the operator's; `TypeError` if an input
    is missing or no array; `UnsupportedError` if the operator has no faithful lowering, or the
    device is a GPU; `PasslibError` if ONNX Runtime is absent, or failed.

    Parameters
    ----------
    op : str
        Registered name or alias.
    *args, **kwargs
        Inputs and attributes. ``out`` is an array or a list of arrays for the results; ``ctx`` the
        device of the result, by default that of the first input.
    """
    operator = schema.find(op)
    assert operator is not None, op
    if operator.name == "cast_storage":
        return _cast_storage(*args, **kwargs)
    if operator.name in sampling.OPERATORS:
        kwargs.pop("name", None)
        return sampling.OPERATORS[operator.name](*args, **kwargs)
    call = read_call(operator, op, args, kwargs, ARRAYS, "array")
    attributes = dict(call.attributes)
    context = _device(attributes.pop("ctx", None), call.inputs)
    if isinstance(call.inputs, Mapping):
        names, given = tuple(call.inputs), list(call.inputs.values())
    else:
        names, given = None, list(call.inputs)
    arrays = [as_dense(array) for array in given]
    results = _run(_Request(op, names, arrays, attributes))
    for result in results:
        result._context = context
    if any(isinstance(array, BaseSparseNDArray) for array in given):
        kind = kept_storage(operator.name, given, attributes)
        return results[0].tostype(kind) if kind else results[0]
    if kwargs.get("out") is not None:
        results = write_out(op, kwargs["out"], results)
    return results[0] if len(results) == 1 else results


def _cast_storage(data: Any, stype: str, out: Any = None, name: str | None = None) -> Any:
    converted = (data if hasattr(data, "tostype") else data.view(NDArray)).tostype(stype)
    return converted if out is None else converted.copyto(out)


def write_out(op: str, targets: Any, results: Sequence[np.ndarray[Any, Any]]) -> list[Any]:
    """Write results to the arrays of ``out``, and return these.

    Raises `TypeError` if the arrays have other shapes or element types, or there are more or fewer
    of them.
    """
    chosen = list(targets) if isinstance(targets, (list, tuple)) else [targets]
    if len(chosen) != len(results):
        raise TypeError(f"operator {op!r} has {len(results)} outputs, and out has {len(chosen)}")
    for position, (target, result) in enumerate(zip(chosen, results, strict=True)):
        if not isinstance(target, (np.ndarray, BaseSparseNDArray)) or (
            target.shape,
            target.dtype,
        ) != (result.shape, result.dtype):
            raise TypeError(
                f"output {position} of operator {op!r} is {result.dtype} of shape "
                f"{result.shape}; out must be an array of that type, not {_described(target)}"
            )
    for target, result in zip(chosen, results, strict=True):
        target[...] = result
    return chosen


def _described(target: Any) -> str:
    """Describe an array by type and shape, another object by its class."""
    if isinstance(target, (np.ndarray, BaseSparseNDArray)):
        return f"{target.dtype} of shape {target.shape}"
    return f"a {type(target).__name__}"


def _device(given: Any, inputs: Any) -> Context:
    if given is not None:
        name, _, number = str(given).rstrip(")").partition("(")
        return require_host(Context(name, int(number or 0)), "an array")
    for array in inputs.values() if isinstance(inputs, Mapping) else inputs:
        return getattr(array, "context", None) or current_context()
    return current_context()


def _run(request: _Request) -> list[NDArray]:
    op, names, arrays, attributes = request
    _core.check_files(arrays)
    texts = tuple((key, scope.text(value)) for key, value in attributes.items())
    types = tuple(array.dtype for array in arrays)
    shapes = tuple(array.shape for array in arrays)
    large = max((array.size for array in arrays), default=0) >= _LARGE
    kind = (op, schema.generation(), names, texts, types, large, is_np_shape())

    def prepare() -> Session:
        node = _node(request)
        _check(node, arrays)
        ranks = tuple(map(len, shapes))
        shared = _by_rank.get((kind, ranks), lambda: _any_sizes(node, arrays, large=large))
        return shared.session or _compiled(node, arrays, [*shapes], large=large)

    session = _by_shape.get((kind, shapes), prepare)
    feeds = {name: arrays[int(name)] for name in session.input_names}
    return [result.view(NDArray) for result in session.run(feeds)]


def _node(request: _Request) -> Symbol:
    """Compose the operator of variables, which are called by the positions of the arrays."""
    op, names, arrays, attributes = request
    variables = [
        Symbol((Entry(Node(VARIABLE, str(position), num_outputs=1)),))
        for position in range(len(arrays))
    ]
    inputs = variables if names is None else dict(zip(names, variables, strict=True))
    made = Symbol(create(op, inputs, attributes, op))
    given = {id(variable.entries[0].node) for variable in variables}
    for entry in made.entries[0].node.inputs:
        if id(entry.node) not in given:
            missing = entry.node.name.removeprefix(f"{op}_")
            raise TypeError(f"operator {op!r} needs the input {missing!r}")
    return made


def _check(node: Symbol, arrays: Sequence[np.ndarray[Any, Any]]) -> None:
    """Check that the arrays fit together; a model for any sizes does not check it."""
    shapes = {str(position): array.shape for position, array in enumerate(arrays)}
    types = {str(position): array.dtype for position, array in enumerate(arrays)}
    infer(node, shapes, types)


def _any_sizes(node: Symbol, arrays: Sequence[np.ndarray[Any, Any]], *, large: bool) -> _Compiled:
    try:
        return _Compiled(_compiled(node, arrays, [(None,) * a.ndim for a in arrays], large=large))
    except PasslibError:
        return _Compiled(None)


def _compiled(
    node: Symbol, arrays: Sequence[np.ndarray[Any, Any]], shapes: Sequence[Shape], *, large: bool
) -> Session:
    specs = {
        str(position): TypeSpec(array.dtype, shape)
        for position, (array, shape) in enumerate(zip(arrays, shapes, strict=True))
    }
    require("onnxruntime", extra="run")
    return Session(node.family.lower(node, specs, {}), Settings(threads=None if large else 1))
