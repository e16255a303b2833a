"""Operators of loaded libraries, as part of the schema."""

from __future__ import annotations

from collections.abc import Mapping

from passlib.dialects.operator_rules import Rules
from passlib.lowering import Graph
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.operator import Operator
from passlib.mxnet.schema.output_rules import numbered

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
    found = {name: registry.find(name) for name in names}
    return {
        n: operator.rules for n, operator in found.items() if isinstance(operator, LibraryOperator)
    }
