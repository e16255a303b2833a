"""The variables of a graph: which are arguments, auxiliary states, or parameters."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import passlib._core as _core
from passlib.errors import UnsupportedError
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.library_operator import LibraryOperator
from passlib.mxnet.schema.parameters import is_true

_DEEPEST: Final = 64
"""How deep graphs may be nested in one another."""

_FUSED: Final = "_sg_mkldnn_conv"

_DATA_INPUTS: Final = frozenset(
    ("data", "label", "lhs", "rhs", "a", "b", "x", "y", "A", "B", "C", "condition", "indices")
)
"""Names of inputs that take both data and parameters."""


def auxiliary_inputs() -> Mapping[str, list[int]]:
    """Return the inputs that are auxiliary states, for operators with a fixed number of them."""
    return _auxiliary_table(registry.generation())


@lru_cache(maxsize=1)
def _auxiliary_table(generation: int) -> dict[str, list[int]]:
    del generation  # the key of the cache: the table holds for one generation
    table = {}
    for name in registry.names():
        operator = registry.find(name)
        if operator is not None and not operator.takes_any_number and operator.auxiliary():
            table[name] = sorted(operator.auxiliary())
    return table


def variables(graph: _core.Graph) -> tuple[list[str], list[str]]:
    """Return the names of a graph's arguments, and of its auxiliary states.

    Raises
    ------
    OperatorError
        A library's operator fails to return the inputs that it writes to.
    UnsupportedError
        Graphs are nested too deeply.
    """
    return _variables(graph, 0)


def states(graph: _core.Graph) -> tuple[dict[str, list[int]], dict[int, list[int]]]:
    """Return the inputs that are auxiliary states, by operator, and by position of the node.

    The entry of a node takes precedence over that of its operator. Errors are those of
    `variables`.
    """
    return dict(auxiliary_inputs()), _own_states(graph, 0)


def _variables(graph: _core.Graph, depth: int) -> tuple[list[str], list[str]]:
    return graph.variables(dict(auxiliary_inputs()), _own_states(graph, depth))


def _own_states(graph: _core.Graph, depth: int) -> dict[int, list[int]]:
    own: dict[int, list[int]] = {}
    for position, op, attrs, number, subgraphs in graph.nodes_with(_writers_by_node(graph)):
        operator = registry.find(op)
        if isinstance(operator, LibraryOperator) and operator.is_subgraph:
            own[position] = _states_within(subgraphs, depth + 1) if subgraphs else []
        elif op == _FUSED:
            own[position] = [i for i in _fused_states(attrs, subgraphs) if i < number]
        elif operator is not None:
            own[position] = [i for i in sorted(operator.auxiliary(attrs)) if i < number]
    return own


def _states_within(subgraphs: list[_core.Graph], depth: int) -> list[int]:
    """Return the positions of the states among the variables of a node's first subgraph."""
    if depth > _DEEPEST:
        message = f"graphs are nested in one another more than {_DEEPEST} levels deep"
        raise UnsupportedError(message)
    states = frozenset(_variables(subgraphs[0], depth)[1])
    names = subgraphs[0].variables({})[0]
    return [position for position, name in enumerate(names) if name in states]


def _fused_states(attrs: Mapping[str, str], subgraphs: list[_core.Graph]) -> list[int]:
    """Return the moving statistics among the inputs of a convolution fused by MXNet.

    The inputs of the convolution come first, then those of the normalisation.
    """
    if not subgraphs or not is_true(attrs.get("with_bn")):
        return []
    first = max((number for *_, number, _ in subgraphs[0].nodes_with({"Convolution"})), default=0)
    return [first + 2, first + 3]


def _writers_by_node(graph: _core.Graph) -> set[str]:
    """Return the operators of a graph whose auxiliary states depend on the node."""
    present = set()
    for op in graph.operators():
        operator = registry.find(op)
        counted = operator is not None and operator.variadic is not None
        if (
            op == _FUSED
            or isinstance(operator, LibraryOperator)
            or (
                operator is not None
                and counted
                and operator.auxiliary({operator.variadic or "": "1"})
            )
        ):
            present.add(op)
    return present


def parameters_among(graph: _core.Graph, names: set[str]) -> set[str]:
    """Return those of some variables that are parameters, not data inputs of the model.

    The format does not state it. A variable counts as a parameter if it has attributes for its
    initialisation or training, as Gluon's do, or if an operator takes it at an input that only
    parameters are for, such as ``weight`` or ``gamma``.
    """
    found = set()
    for name, own_attrs, op, attrs, slot in graph.uses(names):
        operator = registry.find(op)
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
