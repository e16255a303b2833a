"""The variables of a block's graph: inputs, and parameters for all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.dialects import declared
from passlib.dialects.weights.names import bare_name
from passlib.graph.node import VARIABLE
from passlib.model.graph import ModelGraph
from passlib.mxnet.nn.parameter import Parameter
from passlib.mxnet.symbol.symbol import Symbol

_ROW_SPARSE = "1"


def outputs_of(inputs: Any) -> list[Symbol]:
    """Return the outputs of a symbol.

    Raises
    ------
    TypeError
        The argument is not a symbol.
    """
    require_symbol(inputs, "input")
    return list(inputs)


def require_symbol(value: Any, what: str) -> None:
    """Check that a value is a symbol.

    Raises
    ------
    TypeError
        It is not; the message includes ``what``.
    """
    if not isinstance(value, ModelGraph):
        raise TypeError(f"a block's {what} must be a Symbol, not {type(value).__name__}")


def variable_names(variables: Sequence[Any]) -> list[str]:
    """Return the names of variables that become the inputs of a block.

    Raises
    ------
    TypeError
        One is not a symbol.
    ValueError
        One is the output of an operator, or two have the same name.
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
    """Make a parameter for each variable that is not an input, in the order of the graph.

    Parameters
    ----------
    graph : Symbol
    inputs : sequence of str
    params : mapping of str to Parameter or array
        Parameters and the memory of arrays are shared. Names may have the prefix ``arg:`` or
        ``aux:``.

    Returns
    -------
    dict of str to Parameter

    Raises
    ------
    ValueError
        A variable is declared as row_sparse.
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
