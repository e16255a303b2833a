"""Operators of loaded libraries as functions of arrays: ``nd.my_gemm(a, b)``; others as MXNet's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passlib.graph import scope
from passlib.library.arrays import ArrayType, type_of
from passlib.library.operator import Operator
from passlib.library.registry import find_operator, names
from passlib.mxnet.nd import operators
from passlib.mxnet.schema.calls import NAMESPACES, place

SPACES = {"op": "", "_internal": "_internal", **{name: name for name in NAMESPACES}}
"""Namespaces in ``nd``, and how `passlib.mxnet.schema.calls.place` calls each."""


def find(name: str, namespace: str = "") -> Callable[..., Any]:
    """Return the function that applies an operator to arrays, a library's or one of MXNet.

    Raises
    ------
    AttributeError
        There is no such operator.
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

    Parameters
    ----------
    kwargs : dict
        ``out``, ``name`` (for messages) and attributes.

    Raises
    ------
    OperatorError
        The library fails, or does not infer the types of the outputs.
    TypeError
        The number of arrays differs from the operator's, or an argument is not an array.
    UnsupportedError
        The operator takes subgraphs, or the ABI does not have an element type.
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
