"""Variables as composition makes them: nodes that count the writes to them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from passlib.graph.node import VARIABLE, Node


class Variable(Node):
    """A variable made by composition, which counts how often operators write to it.

    NNVM counts writes on the variable, so a second BatchNorm on one moving mean uses version 2.
    The first operator that uses the variable as an auxiliary state also sets its initializer.
    Both belong to composition; the variable is immutable for everyone else.
    """

    __slots__ = ("_mutations",)

    _mutations: int

    def __init__(self, name: str, attrs: Mapping[str, str]) -> None:
        super().__init__(VARIABLE, name, attrs, num_outputs=1)
        _set_mutations(self, 0)

    @property
    def mutations(self) -> int:
        """How many operators write to the variable."""
        return self._mutations

    def count_write(self) -> int:
        """Count one more operator that writes to the variable, and return the number of them."""
        _set_mutations(self, self._mutations + 1)
        return self._mutations

    def complete(self, key: str, value: str) -> None:
        """Set an attribute that the variable does not have yet."""
        if key not in self.attrs:
            _set_attrs(self, MappingProxyType({**self.attrs, key: value}))


_set_mutations = Variable.__dict__["_mutations"].__set__
_set_attrs = Node.__dict__["attrs"].__set__
