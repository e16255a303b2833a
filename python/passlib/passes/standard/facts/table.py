"""Facts about values by the names of their nodes, shared between passes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from passlib.dialects.onnx.lowering.inference import NamedType
from passlib.passes.simplification import kept
from passlib.passes.standard.facts.known import Content, Quantity, Reals

V = TypeVar("V")

Key = tuple[str, int]
"""The name of a node and the number of its output."""


@dataclass
class Table:
    """Facts about the results of operators.

    Attributes
    ----------
    stated : dict of Key to NamedType
        Results of ONNX's inference.
    inferred : set of str
        Operators that inference has seen.
    visited : set of str
        Operators that the rules have seen.
    meaning : dict of str to Quantity
        Names of dimensions from inference, expressed by names of inputs.
    shapes, contents, reals
        Results of rules.
    positive : set of str
        Names of dimensions for which 0 makes the model fail.
    empty_errors : bool
        Keep such failures, so that ``positive`` is not used.
    large_sizes : bool
        Assume that float32 may round open dimensions.
    """

    stated: dict[Key, NamedType] = field(default_factory=dict)
    inferred: set[str] = field(default_factory=set)
    visited: set[str] = field(default_factory=set)
    meaning: dict[str, Quantity] = field(default_factory=dict)
    shapes: dict[Key, tuple[Quantity, ...]] = field(default_factory=dict)
    contents: dict[Key, Content] = field(default_factory=dict)
    reals: dict[Key, Reals] = field(default_factory=dict)
    positive: set[str] = field(default_factory=set)
    empty_errors: bool = True
    large_sizes: bool = True

    def restart(self, stated: dict[Key, NamedType]) -> None:
        """Start with new types: names of dimensions differ between inferences."""
        self.stated = stated
        self.inferred.clear()
        self.positive.clear()
        self.revisit()

    def revisit(self) -> None:
        """Drop the results of rules."""
        for part in (self.visited, self.meaning, self.shapes, self.contents, self.reals):
            part.clear()

    def forget(self, name: str) -> None:
        """Drop the facts about a node."""
        self.inferred.discard(name)
        self.visited.discard(name)

    def retype(self, key: Key, code: int) -> None:
        """Record another dtype of a value, as ONNX's code."""
        old = self.stated.get(key)
        if old is not None:
            self.stated[key] = NamedType(code, old.sizes)

    def copy(self, source: Key, target: Key) -> None:
        """Record that a new value equals a known one."""
        self.inferred.add(target[0])
        self.visited.add(target[0])
        _copy(self.stated, source, target)
        _copy(self.shapes, source, target)
        _copy(self.contents, source, target)
        _copy(self.reals, source, target)


def _copy(part: dict[Key, V], source: Key, target: Key) -> None:
    part.pop(target, None)
    if source in part:
        part[target] = part[source]


def current_table() -> Table:
    """Return the table that passes share, or a new one."""
    common = kept()
    if common is None:
        return Table()
    if "table" not in common:
        common["table"] = Table(
            empty_errors=common.get("empty_errors", True),
            large_sizes=common.get("large_sizes", True),
        )
    found: Table = common["table"]
    return found
