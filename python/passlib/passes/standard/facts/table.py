"""Facts about values by the names of their nodes, which one pass leaves to the next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from passlib.dialects.onnx.lowering.inference import NamedType
from passlib.passes.simplification import kept
from passlib.passes.standard.facts.known import Content, Reals
from passlib.passes.standard.facts.sizes import Quantity

V = TypeVar("V")

Key = tuple[str, int]
"""The name of a node and the number of its output."""


@dataclass
class Table:
    """What is known of the results of operators.

    Attributes
    ----------
    stated : dict of Key to NamedType
        By ONNX's inference.
    inferred : set of str
        The operators whose results inference has seen.
    visited : set of str
        The operators to whose results rules were applied.
    meaning : dict of str to Quantity
        Names that inference gave to sizes, expressed by those of inputs.
    shapes, contents, reals
        What rules found.
    positive : set of str
        Names of sizes without which, that is if they were 0, the model fails.
    empty_errors : bool
        Whether such a failure must be kept, so that these names are of no use.
    large_sizes : bool
        Whether open sizes in float32 may be too large for it, so that it rounds them.
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
        """Begin with new types: names of sizes mean something else in each inference."""
        self.stated = stated
        self.inferred.clear()
        self.positive.clear()
        self.revisit()

    def revisit(self) -> None:
        """Drop what rules found."""
        for part in (self.visited, self.meaning, self.shapes, self.contents, self.reals):
            part.clear()

    def forget(self, name: str) -> None:
        """Drop what was known of a node of this name."""
        self.inferred.discard(name)
        self.visited.discard(name)

    def retype(self, key: Key, code: int) -> None:
        """Note that a value has the element type of ONNX's number ``code`` now."""
        old = self.stated.get(key)
        if old is not None:
            self.stated[key] = NamedType(code, old.sizes)

    def copy(self, source: Key, target: Key) -> None:
        """Note that a new value equals one that is known."""
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
