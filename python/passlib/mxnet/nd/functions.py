"""Operators of libraries as functions of arrays, ``nd.my_gemm(a, b)``, and symbols as such."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from passlib.errors import GraphError
from passlib.graph import scope
from passlib.library.operator import ArrayType, Operator, type_of
from passlib.library.registry import find_operator, names
from passlib.mxnet.nd import operators
from passlib.mxnet.nd.operators import write_out
from passlib.mxnet.schema.calls import NAMESPACES, place
from passlib.mxnet.symbol.symbol import Symbol
from passlib.runtime.runner import Runner

SPACES = {"op": "", "_internal": "_internal", **{name: name for name in NAMESPACES}}
"""Namespaces in ``nd``, and how `passlib.mxnet.schema.calls.place` calls each."""


def find(name: str, namespace: str = "") -> Callable[..., Any]:
    """Return the function that applies an operator to arrays, a library's or one of MXNet.

    Raises `AttributeError` if there is no such operator.
    """
    for registered in names():
        if place(registered) == (namespace, name):
            return _function(registered, name)
    return operators.find(name, namespace)


def _function(registered: str, name: str) -> Callable[..., Any]:
    def function(*inputs: Any, **kwargs: Any) -> Any:
        operator = find_operator(registered)
        assert operator is not None  # operators are never unregistered
        return apply(operator, inputs, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "passlib.nd"
    function.__doc__ = (
        f"Run the operator {registered} of a loaded library.\n\n"
        "Takes arrays by position and ``out``, an array or a list of arrays for the results; other "
        "keywords are the operator's attributes, as text. Returns an array or a list of arrays."
    )
    return function


def apply(operator: Operator, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operator on arrays.

    Raises `OperatorError` if the library fails, or does not infer the types of the outputs;
    `TypeError` if the number of arrays differs from the operator's, or an argument is not an array;
    `UnsupportedError` if the operator takes subgraphs, or the ABI does not have an element type.

    Parameters
    ----------
    kwargs : dict
        ``out``, ``name`` (for messages) and attributes.
    """
    targets = kwargs.pop("out", None)
    node = str(kwargs.pop("name", None) or "")
    attributes = {key: scope.text(value) for key, value in kwargs.items()}
    number, num_outputs = operator.arity(attributes, node)
    if len(inputs) != number:
        raise TypeError(f"operator {operator.name!r} takes {number} arrays, not {len(inputs)}")
    for position, array in enumerate(inputs):
        if not hasattr(array, "dtype") or not hasattr(array, "shape"):
            raise TypeError(f"{operator.name}: input {position} is {array!r}, not an array")
    given = [type_of(array) for array in inputs]
    shapes = operator.infer_shapes(attributes, [t.shape for t in given], num_outputs, node)[1]
    types = operator.infer_types(attributes, [t.dtype for t in given], num_outputs, node)[1]
    storage = operator.infer_storage(attributes, [t.stype for t in given], num_outputs, node)[1]
    outputs = [
        operator.output_type(position, shape, dtype, stype, node)
        for position, (shape, dtype, stype) in enumerate(zip(shapes, types, storage, strict=True))
    ]
    results = _run(operator, node, attributes, inputs, given, outputs)
    if targets is not None:
        results = operators.write_out(operator.name, targets, results)
    return results[0] if len(results) == 1 else results


def _run(
    operator: Operator,
    node: str,
    attributes: dict[str, str],
    inputs: tuple[Any, ...],
    given: list[ArrayType],
    outputs: list[ArrayType],
) -> list[Any]:
    if not operator.is_stateful:
        return operator.forward(node, attributes, inputs, outputs)
    shapes, types = [t.shape for t in given], [t.dtype for t in given]
    return operator.create_state(node, attributes, shapes, types).forward(inputs, outputs)


class CachedOp:
    """Computes the outputs of a symbol, which is compiled once for each kind of inputs.

    Parameters
    ----------
    flags : sequence of (str, str)
        Ignored; accepted for compatibility with MXNet.

    Examples
    --------
    >>> import passlib as mx
    >>> square = mx.nd.CachedOp(mx.sym.square(mx.sym.var("x")))
    >>> square(mx.nd.array([3])).asnumpy()
    array([9.], dtype=float32)
    """

    def __init__(self, sym: Symbol, flags: Sequence[tuple[str, str]] = ()) -> None:
        self._names = sym.list_inputs()
        self._runner = Runner(sym, sym.family)

    def __call__(self, *args: Any, out: Any = None, **ignored: Any) -> Any:
        """Compute the outputs.

        Parameters
        ----------
        *args : array
            One for each of `Symbol.list_inputs`, in that order.
        out : array or sequence of arrays, optional
            Where the outputs are written to.
        **ignored
            Accepted for compatibility with MXNet.

        Raises
        ------
        GraphError
            There are not as many arrays as inputs, or they do not fit.
        """
        if len(args) != len(self._names):
            raise GraphError(
                f"the symbol has {len(self._names)} inputs ({', '.join(self._names)}), "
                f"not {len(args)}"
            )
        feeds = dict(zip(self._names, args, strict=True))
        outcome = self._runner.run(feeds, {})
        for name, updated in {**outcome.updates, **outcome.mutated}.items():
            np.copyto(np.asarray(feeds[name]), np.asarray(updated))
        outputs = list(outcome.outputs)
        if out is not None:
            outputs = write_out("CachedOp", out, outputs)
        return outputs[0] if len(outputs) == 1 else outputs
