"""The registry of MXNet operators: those of MXNet 1.9.1, and those of loaded libraries.

The table is MXNet 1.9.1's registry as the running program reports it (operators.json, written by
tests/interop/support/make_operators.py), without gradient nodes and operators that hold pointers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.dialects.operator_types import Rules
from passlib.errors import UnsupportedError
from passlib.lowering import Graph
from passlib.mxnet.schema.operator import Operator, is_true, numbered


@cache
def _table() -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    text = Path(__file__).with_name("operators.json").read_text("utf-8")
    table: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for name, facts in json.loads(text).items():
        for alias in (name, *facts.get("aliases", ())):
            table[alias] = (name, facts)
    return table


_found: dict[str, Operator] = {}
_registered: dict[str, Operator] = {}
_generation = 0


def find(op: str) -> Operator | None:
    """Return the operator of a name or an alias; None if none is registered."""
    operator = _found.get(op)
    if operator is None:
        entry = _table().get(op)
        if entry is None:
            return None
        name, facts = entry
        operator = _found.get(name) or Operator(name, facts)
        _found[name] = _found[op] = operator
    return operator


def names() -> Iterator[str]:
    """Iterate over the names of all operators, aliases included."""
    yield from _table()
    yield from (name for name in _registered if name not in _table())


def register(operator: Operator) -> None:
    """Add an operator of a library; it replaces any other of its name."""
    global _generation  # noqa: PLW0603 (one registry a process, as there is one set of libraries)
    _registered[operator.name] = _found[operator.name] = operator
    _generation += 1


def generation() -> int:
    """Return the number of registrations so far; a table of all operators holds for one."""
    return _generation


_NO_ATTRS: Mapping[str, str] = {}


class LibraryOperator(Operator):
    """An operator that its library defines. It takes any attribute, and its inputs have no names.

    Methods raise `OperatorError` where the library's own functions fail.
    """

    def __init__(self, rules: Rules) -> None:
        super().__init__(
            rules.name,
            {"inputs": (), "parameters": {}, "open": True, "explicit": True, "variadic": ""},
        )
        self._rules = rules

    @property
    def rules(self) -> Rules:
        """Arity, shapes and types, as the library defines them."""
        return self._rules

    @property
    def is_subgraph(self) -> bool:
        """Whether inputs and outputs are those of the graph that a node carries."""
        return self._rules.is_subgraph

    @property
    def fixed_outputs(self) -> None:
        """None: the number of outputs is determined for each node."""

    def input_names(self, attrs: Mapping[str, str] = _NO_ATTRS) -> tuple[str, ...]:
        """Return numbered names of the inputs; ``data`` for a single one, as in MXNet."""
        if self._rules.is_subgraph:
            return ()
        number = self._rules.arity(attrs)[0]
        return ("data",) if number == 1 else tuple(f"arg{i}" for i in range(number))

    def mutable_inputs(self, attrs: Mapping[str, str] = _NO_ATTRS) -> frozenset[int]:
        """Return the positions of the inputs that the operator writes to.

        Empty for a subgraph operator, where they depend on its graph.
        """
        if self._rules.is_subgraph:
            return frozenset()
        return frozenset(self._rules.mutated_inputs(attrs))

    def _outputs_of(self, attrs: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        if self._rules.is_subgraph:
            return (), 0
        names, total = numbered(self._rules.arity(attrs)[1])
        return tuple(names), total


def library_rules(graph: Graph) -> dict[str, Rules]:
    """Return the rules of those operators of a graph that libraries registered, by name."""
    names = {node.op for node in graph.nodes() if not node.is_variable}
    found = {name: find(name) for name in names}
    return {
        n: operator.rules for n, operator in found.items() if isinstance(operator, LibraryOperator)
    }


def complete(graph: _core.Graph) -> None:
    """Set the registered name of every operator, and the number of outputs that it states.

    MXNet writes ``_copy`` where a file or a pass said ``identity``. It also computes the numbers of
    outputs and ignores the ``node_row_ptr`` of a file. Raises `GraphError` if an output is used
    that its node does not have.
    """
    table = _operator_table(generation())
    if not graph.rename_operators(table):
        return
    counts = []
    for op, attrs, nodes in graph.doubtful_outputs(table):
        by_attributes = None
        for position, present, carried in nodes:
            if not carried and by_attributes is None:
                by_attributes = count_outputs(op, attrs)
                table.add_counted(graph, position, by_attributes)
            count = carried or by_attributes or 0
            if count > 0 and count != present:
                counts.append((position, count))
    if counts:
        graph.set_outputs(counts)
        graph.check()
    graph.note_completed(table)


@lru_cache(maxsize=1)
def _operator_table(generation: int) -> _core.OperatorTable:
    fixed, varying, carrying = {"null": 1}, set(), set()
    registered: dict[str, str] = {}
    for name in names():
        operator = find(name)
        if operator is None:
            continue
        if operator.name != name:
            registered[name] = operator.name
        if operator.fixed_outputs is None:
            varying.add(name)
            if isinstance(operator, LibraryOperator) and operator.is_subgraph:
                carrying.add(name)
        else:
            fixed[name] = operator.fixed_outputs
    return _core.OperatorTable(fixed, varying, carrying, registered)


def count_outputs(op: str, attributes: Mapping[str, str]) -> int:
    """Count all outputs of an operator; 0 where only its uses determine them."""
    if op == "null":
        return 1
    operator = find(op)
    return operator.num_outputs(attributes) if operator is not None else 0


_DEEPEST: Final = 64
"""How deep graphs may be nested in one another."""

_FUSED: Final = "_sg_mkldnn_conv"

_DATA_INPUTS: Final = frozenset(
    ("data", "label", "lhs", "rhs", "a", "b", "x", "y", "A", "B", "C", "condition", "indices")
)
"""Names of inputs that take both data and parameters."""


def auxiliary_inputs() -> Mapping[str, list[int]]:
    """Return the inputs that are auxiliary states, for operators with a fixed number of them."""
    return _auxiliary_table(generation())


@lru_cache(maxsize=1)
def _auxiliary_table(generation: int) -> dict[str, list[int]]:
    table = {}
    for name in names():
        operator = find(name)
        if operator is not None and not operator.takes_any_number and operator.auxiliary():
            table[name] = sorted(operator.auxiliary())
    return table


def variables(graph: _core.Graph) -> tuple[list[str], list[str]]:
    """Return the names of a graph's arguments, and of its auxiliary states.

    Raises `OperatorError` if a library's operator fails to return the inputs that it writes to;
    `UnsupportedError` if graphs are nested too deeply.
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
        operator = find(op)
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
        raise UnsupportedError(f"graphs are nested in one another more than {_DEEPEST} levels deep")
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
        operator = find(op)
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
        operator = find(op)
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
