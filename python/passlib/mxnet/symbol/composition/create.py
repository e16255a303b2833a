"""Composition: nodes of MXNet's operators, with automatic names and variables.

Every function here costs the same however large the graph already is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.errors import GraphError, UnsupportedError, did_you_mean
from passlib.graph import names as naming
from passlib.graph import scope
from passlib.graph.node import Entry, Node
from passlib.graph.plain import PlainGraph
from passlib.mxnet import schema
from passlib.mxnet.schema import Operator
from passlib.mxnet.schema.hidden import hidden_on_operator
from passlib.mxnet.schema.library_operator import LibraryOperator
from passlib.mxnet.schema.node_checks import check_attributes
from passlib.mxnet.symbol.composition.variable import Variable

_COUNTED = "num_args"
_DIALECT = "mxnet"


def create(
    op: str,
    inputs: Sequence[PlainGraph] | Mapping[str, PlainGraph] = (),
    attrs: Mapping[str, object] | None = None,
    name: str | None = None,
    *,
    hint: str | None = None,
    subgraphs: Sequence[PlainGraph] = (),
) -> tuple[Entry, ...]:
    """Make the node of an operator.

    Parameters
    ----------
    op : str
        Registered name or alias.
    inputs : sequence or mapping of PlainGraph
        By position, or by the operator's names for its inputs. A missing input becomes a
        variable ``<name>_<input>`` with the operator's attributes.
    attrs : mapping, optional
        Values are spelled as text, tuples as Python prints them.
    name : str, optional
        By default the `NameManager` chooses one.
    hint : str, optional
        Stem of an automatic name, by default the operator's name in lower case.
    subgraphs : sequence of PlainGraph, optional
        Nested graphs of an operator that has them.

    Returns
    -------
    tuple of Entry
        The node's visible outputs.

    Raises
    ------
    UnsupportedError
        MXNet 1.9.1 has no such operator, its number of outputs is unknown, or an input belongs to
        another dialect.
    GraphError
        An attribute that the operator does not have, cannot read or misses; an input that it does
        not have, misses, or that has several outputs.
    """
    operator = schema.find(op)
    if operator is None:
        near = did_you_mean(op, schema.names())
        message = f"neither MXNet 1.9.1 nor a loaded library has operator {op!r}{near}"
        raise UnsupportedError(message)
    name = naming.current().get(name, hint if hint is not None else op.lower())
    count = len(inputs) + len(subgraphs)
    texts = _attributes(operator, name, attrs or {}, count)
    visible = operator.num_visible_outputs(texts)
    if visible == 0:
        message = (
            f"node {name!r}: the attributes of operator {operator.name!r} do not determine how "
            f"many outputs it has, so it cannot be composed"
        )
        raise UnsupportedError(message)
    if isinstance(inputs, Mapping):
        named: Mapping[str, PlainGraph] = inputs
        names = operator.input_names(texts)
    else:
        names = operator.input_names(texts)
        if len(inputs) > len(names):
            message = (
                f"node {name!r}: operator {operator.name!r} takes {len(names)} inputs "
                f"({', '.join(names)}) with these attributes, not {len(inputs)}"
            )
            raise GraphError(message)
        named = dict(zip(names, inputs, strict=False))
    entries = _entries(operator, name, names, named, texts)
    _count_writes(operator, name, names, entries, texts)
    node = Node(
        operator.name, name, texts, entries, operator.num_outputs(texts), subgraphs=subgraphs
    )
    return tuple(Entry(node, index) for index in range(visible))


def _attributes(
    operator: Operator, name: str, attrs: Mapping[str, object], count: int
) -> dict[str, str]:
    parameters = operator.parameters
    texts: dict[str, str] = {}
    for given, value in attrs.items():
        key = given if given in parameters else hidden_on_operator(given)
        typed = key == "dtype" and not isinstance(operator, LibraryOperator)
        text = _type_name(value) if typed else scope.text(value)
        texts.setdefault(key, text)
    if operator.variadic == _COUNTED:
        texts.setdefault(_COUNTED, str(count))
    check_attributes(operator, f"node {name!r}", texts)
    return texts


def _type_name(value: Any) -> str:
    try:
        return str(np.dtype(value).name)
    except TypeError:
        # "bfloat16" and unknown names: the declared choices decide.
        return scope.text(value)


def _entries(
    operator: Operator,
    name: str,
    names: tuple[str, ...],
    named: Mapping[str, PlainGraph],
    attrs: Mapping[str, str],
) -> list[Entry]:
    known = set(names)
    for key in named:
        if key not in known:
            message = (
                f"node {name!r}: operator {operator.name!r} has no input {key!r} with these "
                f"attributes; its inputs are: {', '.join(names) or 'none'}"
            )
            raise GraphError(message)
    entries: list[Entry] = []
    for key in names:
        symbol = named.get(key)
        if symbol is None:
            if not operator.makes_variables:
                message = f"node {name!r}: operator {operator.name!r} needs the input {key!r}"
                raise GraphError(message)
            entries.append(Entry(Variable(f"{name}_{key}", attrs)))
            continue
        if symbol.dialect != _DIALECT:
            message = (
                f"node {name!r}: input {key!r} is a graph of the dialect {symbol.dialect!r}, which "
                f"cannot have MXNet's operator {operator.name!r}; such graphs are changed by passes"
            )
            raise UnsupportedError(message)
        heads = symbol.entries
        if len(heads) != 1:
            message = (
                f"node {name!r}: input {key!r} of operator {operator.name!r} is a symbol with "
                f"{len(heads)} outputs; choose one with [i]"
            )
            raise GraphError(message)
        entries.append(heads[0])
    return entries


def _count_writes(
    operator: Operator,
    name: str,
    names: tuple[str, ...],
    entries: list[Entry],
    attrs: Mapping[str, str],
) -> None:
    written = operator.mutable_inputs(attrs)
    for position in written:
        node = entries[position].node
        if not node.is_variable:
            message = (
                f"node {name!r}: operator {operator.name!r} writes to its input "
                f"{names[position]!r}, which must be a variable and is the output of {node.name!r}"
            )
            raise GraphError(message)
    for position, entry in enumerate(entries):
        if isinstance(entry.node, Variable) and entry.node.mutations:
            entries[position] = entry._replace(version=entry.node.mutations)
    for position in sorted(written):
        entry = entries[position]
        if isinstance(entry.node, Variable):
            entries[position] = entry._replace(version=entry.node.count_write())
        else:
            entries[position] = entry._replace(version=entry.version + 1)
    for key, value in operator.initial.items():
        if key in names:
            owner = entries[names.index(key)].node
            if isinstance(owner, Variable):
                owner.complete("__init__", value)
