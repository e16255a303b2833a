"""Operators of loaded libraries, as the rest of the dialect asks for them."""

from __future__ import annotations

from collections.abc import Mapping

from passlib.dialects.mxnet import arity, schema
from passlib.dialects.mxnet.schema import Operator
from passlib.dialects.operator_rules import Rules
from passlib.lowering import Graph

__all__ = ["LibraryOperator", "library_rules"]

_NO_ATTRS: Mapping[str, str] = {}


class LibraryOperator(Operator):
    """An operator whose library decides all. It takes any attribute and names no inputs.

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
        """What the library says of it."""
        return self._rules

    @property
    def is_subgraph(self) -> bool:
        """Whether inputs and outputs are those of the graph that a node carries."""
        return self._rules.is_subgraph

    @property
    def fixed_outputs(self) -> None:
        """None: the number of outputs is asked for each node."""

    def input_names(self, attrs: Mapping[str, str] = _NO_ATTRS) -> tuple[str, ...]:
        """Name the inputs by their number; ``data`` if it is the only one, as in MXNet."""
        if self._rules.is_subgraph:
            return ()
        number = self._rules.arity(attrs)[0]
        return ("data",) if number == 1 else tuple(f"arg{i}" for i in range(number))

    def mutable_inputs(self, attrs: Mapping[str, str] = _NO_ATTRS) -> frozenset[int]:
        """Give the positions of the inputs that the operator writes to.

        Those of a subgraph operator depend on its graph and are not among them.
        """
        if self._rules.is_subgraph:
            return frozenset()
        return frozenset(self._rules.mutated_inputs(attrs))

    def _give_out(self, attrs: Mapping[str, str]) -> tuple[tuple[str, ...], int]:
        if self._rules.is_subgraph:
            return (), 0
        names, total = arity.numbered(self._rules.arity(attrs)[1])
        return tuple(names), total


def library_rules(graph: Graph) -> dict[str, Rules]:
    """Give what libraries say of those operators of a graph that they registered, by name."""
    names = {node.op for node in graph.nodes() if not node.is_variable}
    found = {name: schema.find(name) for name in names}
    return {
        n: operator.rules for n, operator in found.items() if isinstance(operator, LibraryOperator)
    }
