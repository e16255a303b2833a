"""MXNet's symbol files: NNVM's graph JSON with ``mxnet_version``.

Source of the format: MXNet 1.9.1's writer and its rules for files of older versions.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from passlib import _core
from passlib.dialects.mxnet import schema
from passlib.errors import FormatError, GraphError, UnsoundFileError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ATTRIBUTES",
    "auxiliary_inputs",
    "auxiliary_inputs_of",
    "complete",
    "count_outputs",
    "default_attributes",
    "parameters_among",
    "read",
    "saved_version",
    "variables",
]

VERSION = 10901
"""The MXNet version whose files passlib writes."""

OLDEST = 800
"""Files without a version are from MXNet 0.8 or earlier."""

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
    for position, op, attrs, present in graph.doubtful_outputs(_output_table()):
        count = count_outputs(op, attrs)
        if count > 0 and count != present:
            counts.append((position, count))
    if counts:
        graph.set_outputs(counts)
        graph.check()


@lru_cache(maxsize=1)
def _output_table() -> _core.OutputTable:
    fixed, varying = {"null": 1}, set()
    for name in schema.names():
        operator = schema.find(name)
        if operator is None:
            continue
        if operator.fixed_outputs is None:
            varying.add(name)
        else:
            fixed[name] = operator.fixed_outputs
    return _core.OutputTable(fixed, varying)


def count_outputs(op: str, attrs: Mapping[str, str]) -> int:
    """Count all outputs of an operator; 0 if only its uses can tell."""
    if op == "null":
        return 1
    operator = schema.find(op)
    return operator.num_outputs(attrs) if operator is not None else 0


@lru_cache(maxsize=1)
def auxiliary_inputs() -> dict[str, list[int]]:
    """Give the inputs that are auxiliary states, for the operators that have a fixed number."""
    table = {}
    for name in schema.names():
        operator = schema.find(name)
        if operator is not None and not operator.takes_any_number and operator.auxiliary():
            table[name] = sorted(operator.auxiliary())
    return table


def auxiliary_inputs_of(graph: _core.Graph) -> dict[str, list[int]]:
    """Give the inputs that are auxiliary states, for all operators of a graph."""
    table = dict(auxiliary_inputs())
    for _, op, attrs in _variadic_writers(graph):
        operator = schema.find(op)
        if operator is not None:
            table[op] = sorted({*table.get(op, ()), *operator.auxiliary(attrs)})
    return table


def variables(graph: _core.Graph) -> tuple[list[str], list[str]]:
    """Name the variables of a graph: arguments, and auxiliary states."""
    return graph.variables(auxiliary_inputs_of(graph))


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


def _variadic_writers(graph: _core.Graph) -> list[tuple[int, str, dict[str, str]]]:
    """List the nodes that write to a number of inputs that depends on their attributes."""
    present = set()
    for op in graph.operators():
        operator = schema.find(op)
        if operator is None or operator.variadic is None:
            continue
        if operator.auxiliary({operator.variadic: "1"}):
            present.add(op)
    if not present:
        return []
    return [(i, op, attrs) for i, (op, _, attrs, *_) in enumerate(graph.nodes()) if op in present]
