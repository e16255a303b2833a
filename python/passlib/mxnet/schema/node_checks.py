"""Checks of nodes against their operators: the attributes and the number of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from passlib.errors import GraphError, did_you_mean
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.hidden import is_dunder
from passlib.mxnet.schema.library_operator import LibraryOperator
from passlib.mxnet.schema.operator import Operator

_SHOWN: Final = 80
"""How many characters of a value a message shows."""


def check_attributes(operator: Operator, where: str, attrs: Mapping[str, str]) -> None:
    """Check the attributes of a node as MXNet does when it reads or makes the node.

    Parameters
    ----------
    operator : Operator
    where : str
        The node, for messages.
    attrs : mapping of str to str

    Raises
    ------
    GraphError
        An attribute that the operator does not have, whose value does not have the declared type,
        or that is missing. The message names node, operator and attribute, and what is declared.
    """
    parameters = operator.parameters
    for key, text in attrs.items():
        parameter = parameters.get(key)
        if parameter is not None:
            if not parameter.accepts(text):
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
                message = (
                    f"{where}: attribute {key!r} of operator {operator.name!r} cannot be "
                    f"{shown!r}; it is declared as {parameter.description}"
                )
                raise GraphError(message)
        elif not (operator.open or is_dunder(key) or key == operator.variadic):
            hint = did_you_mean(key, parameters)
            message = (
                f"{where}: operator {operator.name!r} has no attribute {key!r}"
                f"{hint}; it has: {', '.join(parameters) or 'none'}"
            )
            raise GraphError(message)
    for parameter in parameters.values():
        if parameter.required and parameter.name not in attrs:
            message = (
                f"{where}: operator {operator.name!r} needs the attribute "
                f"{parameter.name!r} ({parameter.type_text})"
            )
            raise GraphError(message)


def check_nodes(nodes: Iterable[Node]) -> None:
    """Check attributes and numbers of inputs of all nodes whose operators are known.

    Raises
    ------
    GraphError
        See `check_attributes`; or a node has more or fewer inputs than its operator takes with
        these attributes.
    """
    for node in nodes:
        operator = None if node.is_variable else registry.find(node.op)
        if operator is None:
            continue
        check_attributes(operator, blame(node), node.attrs)
        names = () if isinstance(operator, LibraryOperator) else operator.input_names(node.attrs)
        if names and len(names) != len(node.inputs):
            message = (
                f"{blame(node)}: operator {operator.name!r} takes {len(names)} inputs "
                f"({', '.join(names)}) with these attributes, not {len(node.inputs)}"
            )
            raise GraphError(message)
