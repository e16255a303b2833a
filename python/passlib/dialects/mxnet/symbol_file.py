"""MXNet's symbol files: NNVM's graph JSON with ``mxnet_version``.

Source of the format: MXNet 1.9.1's writer and its rules for files of older versions.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from passlib import _core
from passlib.dialects.mxnet import schema
from passlib.dialects.mxnet.library_operator import LibraryOperator
from passlib.errors import FormatError, GraphError, UnsoundFileError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ATTRIBUTES",
    "auxiliary_inputs",
    "complete",
    "count_outputs",
    "default_attributes",
    "parameters_among",
    "read",
    "saved_version",
    "states",
    "variables",
]

VERSION = 10901
"""The MXNet version whose files passlib writes."""

OLDEST = 800
"""Files without a version are from MXNet 0.8 or earlier."""

_DEEPEST = 64
"""How deep graphs may be nested in one another."""

ATTRIBUTES = "attrs"
"""The key of the file under which the graph's own attributes stand, the version among them."""


def read(text: str | bytes) -> tuple[_core.Graph, dict[str, str], int]:
    """Parse a symbol file.

    Parameters
    ----------
    text : str or bytes
        The graph goes on using its memory. Control characters in strings may stand unescaped,
        as MXNet writes them.

    Returns
    -------
    graph : _core.Graph
        Checked, in post-order from the heads, without what no head needs; for files of the
        present version with all numbers of outputs.
    attributes : dict of str to str
        Top-level attributes as JSON by key; the graph itself has none.
    version : int
        The MXNet version that wrote it.

    Raises
    ------
    FormatError
        The text is not JSON or not a graph, with line and column.
    """
    graph = _core.Graph.parse(text, lenient=True, ordered=True)
    attributes = graph.attributes()
    version = saved_version(attributes)
    if version >= VERSION:  # older files first need the upgrade
        try:
            complete(graph)
        except GraphError as error:
            raise UnsoundFileError(str(error)) from error
    return graph, attributes, version


def saved_version(attributes: Mapping[str, str]) -> int:
    """Tell which version of MXNet wrote a file with these top-level attributes (JSON by key)."""
    saved = json.loads(attributes.get(ATTRIBUTES, "{}"))
    if not isinstance(saved, dict):
        message = "the top-level 'attrs' must be an object"
        raise FormatError(message)
    if "mxnet_version" not in saved:
        return OLDEST
    match saved["mxnet_version"]:
        case ["int", int(version)]:
            return version
        case other:
            message = f'"mxnet_version" must be ["int", number], not {json.dumps(other)}'
            raise FormatError(message)


def default_attributes() -> dict[str, str]:
    """Give the top-level attributes of a new symbol, as JSON by key."""
    return {ATTRIBUTES: json.dumps({"mxnet_version": ["int", VERSION]})}


def complete(graph: _core.Graph) -> None:
    """Give every node of a known operator the number of outputs that the schema says.

    MXNet counts anew as well, and pays no heed to the ``node_row_ptr`` of a file.

    Raises
    ------
    GraphError
        An output is used that its node does not have.
    """
    counts = []
    table = _output_table(schema.generation())
    for position, op, attrs, present, carried in graph.doubtful_outputs(table):
        count = carried or count_outputs(op, attrs)
        if count > 0 and count != present:
            counts.append((position, count))
    if counts:
        graph.set_outputs(counts)
        graph.check()


@lru_cache(maxsize=1)
def _output_table(generation: int) -> _core.OutputTable:
    del generation  # the table is made anew for each one
    fixed, varying, carrying = {"null": 1}, set(), set()
    for name in schema.names():
        operator = schema.find(name)
        if operator is None:
            continue
        if operator.fixed_outputs is None:
            varying.add(name)
            if isinstance(operator, LibraryOperator) and operator.is_subgraph:
                carrying.add(name)
        else:
            fixed[name] = operator.fixed_outputs
    return _core.OutputTable(fixed, varying, carrying)


def count_outputs(op: str, attrs: Mapping[str, str]) -> int:
    """Count all outputs of an operator; 0 if only its uses can tell."""
    if op == "null":
        return 1
    operator = schema.find(op)
    return operator.num_outputs(attrs) if operator is not None else 0


def auxiliary_inputs() -> Mapping[str, list[int]]:
    """Give the inputs that are auxiliary states, for the operators that have a fixed number."""
    return _auxiliary_table(schema.generation())


@lru_cache(maxsize=1)
def _auxiliary_table(generation: int) -> dict[str, list[int]]:
    del generation  # the table is made anew for each one
    table = {}
    for name in schema.names():
        operator = schema.find(name)
        if operator is not None and not operator.takes_any_number and operator.auxiliary():
            table[name] = sorted(operator.auxiliary())
    return table


def variables(graph: _core.Graph) -> tuple[list[str], list[str]]:
    """Name the variables of a graph: arguments, and auxiliary states.

    Raises
    ------
    OperatorError
        A library's operator fails to tell what it writes to.
    UnsupportedError
        Graphs are nested too deeply.
    """
    return _variables(graph, 0)


def states(graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
    """Give the inputs that are auxiliary states, by operator, and by position of the node.

    What is said of a node counts for it alone. Errors are those of `variables`.
    """
    return dict(auxiliary_inputs()), _own_states(graph, 0)


def _variables(graph: _core.Graph, depth: int) -> tuple[list[str], list[str]]:
    return graph.variables(dict(auxiliary_inputs()), _own_states(graph, depth))


def _own_states(graph: _core.Graph, depth: int) -> dict[int, list[int]]:
    own: dict[int, list[int]] = {}
    for position, op, attrs, number, subgraphs in graph.nodes_with(_writers_by_node(graph)):
        operator = schema.find(op)
        if isinstance(operator, LibraryOperator) and operator.is_subgraph:
            own[position] = _states_within(subgraphs, depth + 1) if subgraphs else []
        elif operator is not None:
            own[position] = [i for i in sorted(operator.auxiliary(attrs)) if i < number]
    return own


def _states_within(subgraphs: list[_core.Graph], depth: int) -> list[int]:
    """Positions of the states among the variables of a graph that a node runs, its first one."""
    if depth > _DEEPEST:
        message = f"graphs are nested in one another more than {_DEEPEST} levels deep"
        raise UnsupportedError(message)
    states = frozenset(_variables(subgraphs[0], depth)[1])
    names = subgraphs[0].variables({})[0]
    return [position for position, name in enumerate(names) if name in states]


def _writers_by_node(graph: _core.Graph) -> set[str]:
    """Name the operators of a graph that write to what only each node tells."""
    present = set()
    for op in graph.operators():
        operator = schema.find(op)
        counted = operator is not None and operator.variadic is not None
        if isinstance(operator, LibraryOperator) or (
            operator is not None and counted and operator.auxiliary({operator.variadic or "": "1"})
        ):
            present.add(op)
    return present


_DATA_INPUTS = frozenset(
    ("data", "label", "lhs", "rhs", "a", "b", "x", "y", "A", "B", "C", "condition", "indices")
)
"""Names of inputs at which both data and parameters stand."""


def parameters_among(graph: _core.Graph, names: set[str]) -> set[str]:
    """Choose from variables those that are parameters, not data inputs of the model.

    The format does not say. A variable is taken for a parameter if it says how to initialise or
    train it, as Gluon's do, or if an operator takes it at an input that only parameters are for,
    such as ``weight`` or ``gamma``.
    """
    found = set()
    for name, own_attrs, op, attrs, slot in graph.uses(names):
        operator = schema.find(op)
        inputs = operator.input_names(attrs) if operator is not None else ()
        weight_input = (
            operator is not None
            and not operator.takes_any_number
            and slot < len(inputs)
            and inputs[slot] not in _DATA_INPUTS
        )
        if weight_input or "__init__" in own_attrs or "__lr_mult__" in own_attrs:
            found.add(name)
    return found
