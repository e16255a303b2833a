"""Paths through a computation on symbols: each decision is taken in every possible way.

A computation asks a `Path` for decisions about symbolic sizes, ranks, types and operator sets.
`explore` runs it once for every combination of answers that Z3 does not exclude.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from passlib.files.optional import require

Size = Any
"""A whole number, or Z3's term for one."""

_QUERY_STEPS: Final = 2_000_000
_MOST_PATHS: Final = 60_000


class DeadEndError(Exception):
    """The assumptions of a path contradict each other, or the rule does not apply."""


class SkippedError(DeadEndError):
    """The rule does not apply on this path."""


class UnprovenError(Exception):
    """A path that is not proven; the text is the reason."""


class OutOfTimeError(UnprovenError):
    """The limit of time or paths is reached."""


class Type:
    """An element type that is not chosen yet: the types it may have in each operator set."""

    def __init__(self, domain: frozenset[tuple[int, str]]) -> None:
        self._domain = domain
        self._parent: Type | None = None

    def root(self) -> Type:
        """Return what stands for all types that must be equal to it."""
        found = self
        while found._parent is not None:
            found = found._parent
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.root() is other.root()

    def __hash__(self) -> int:
        return id(self.root())


class Path:
    """One way through a computation.

    Parameters
    ----------
    script : list
        Decisions of earlier runs, as pairs of the choice and the number of choices; new ones are
        appended.
    deadline : float
        In seconds of the process.
    """

    def __init__(self, script: list[list[int]], deadline: float) -> None:
        self.z3: Any = require("z3", extra="prove")
        self.script = script
        self.place = 0
        self.deadline = deadline
        self.solver = self.z3.Solver()
        self.solver.set("rlimit", _QUERY_STEPS)
        self.opsets: list[int] = []
        self.bound: list[Any] = []
        self.closed = False
        """Whether the replacement is built: nothing more may be assumed."""
        self.bounds: set[str] = set()
        """Limits up to which the rule is proven."""
        self.unordered: frozenset[str] = frozenset()
        """Attributes whose order counts for nothing in the rule."""
        self._number = 0
        self._axes: dict[int, tuple[Any, int, int]] = {}

    def choose(self, count: int) -> int:
        """Return a number below `count`; other runs return the others."""
        if time.process_time() > self.deadline:
            raise OutOfTimeError("the time limit is reached")
        if self.place == len(self.script):
            self.script.append([0, count])
        taken = self.script[self.place][0]
        self.place += 1
        return taken

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        if not items:
            raise DeadEndError
        return items[self.choose(len(items))] if len(items) > 1 else items[0]

    def decide(self, condition: Any) -> bool:
        """Whether a condition holds on this path; others take the other way."""
        if isinstance(condition, bool):
            return condition
        condition = self.z3.simplify(condition)
        if self.z3.is_true(condition):
            return True
        if self.z3.is_false(condition):
            return False
        if self.place == len(self.script):
            yes = self.possible(condition)
            no = not yes or self.possible(self.z3.Not(condition))
            if not yes and not self.possible(True):
                raise DeadEndError
            self.script.append([0, 2] if yes and no else [0 if yes else 1, 1 if yes else 2])
        taken = self.script[self.place][0] == 0
        self.place += 1
        self.solver.add(condition if taken else self.z3.Not(condition))
        return taken

    def assume(self, condition: Any) -> None:
        """Go on only where a condition holds."""
        if isinstance(condition, bool):
            if not condition:
                raise DeadEndError
            return
        if self.closed:
            if not self.proves(condition):
                raise UnprovenError("the replacement may not be valid")
            return
        condition = self.z3.simplify(condition)
        if self.z3.is_false(condition):
            raise DeadEndError
        if not self.z3.is_true(condition):
            self.solver.add(condition)

    def possible(self, condition: Any) -> bool:
        """Whether a condition may hold; True if Z3 does not know."""
        if time.process_time() > self.deadline:
            raise OutOfTimeError("the time limit is reached")
        self.solver.push()
        self.solver.add(condition)
        found = self.solver.check()
        self.solver.pop()
        return bool(found != self.z3.unsat)

    def proves(self, condition: Any) -> bool:
        """Whether a condition follows from the assumptions."""
        if isinstance(condition, bool):
            return condition
        condition = self.z3.simplify(condition, som=True)
        if self.z3.is_true(condition):
            return True
        if self.z3.is_false(condition):
            return not self.possible(True)
        return not self.possible(self.z3.Not(condition))

    def same(self, one: Size, other: Size) -> bool:
        """Whether two sizes are equal, for all values of the symbols."""
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        if one is other or (
            not isinstance(one, int) and not isinstance(other, int) and one.eq(other)
        ):
            return True
        return self.proves(one == other)

    def number(self, name: str, low: int | None = 0) -> Any:
        """Return a new symbol for a whole number."""
        self._number += 1
        made = self.z3.Int(f"{name}.{self._number}")
        if low is not None:
            self.solver.add(made >= low)
        return made

    def axis(self, name: str, axis: int, rank: int) -> Any:
        """Return a symbol for an axis that may be counted from the end."""
        self._number += 1
        made = self.z3.Int(f"{name}.{self._number}")
        self.solver.add(self.z3.Or(made == axis, made == axis - rank))
        self._axes[made.get_id()] = (made, axis, rank)
        return made

    def known_axis(self, value: Any, rank: int) -> int | None:
        """Return the axis that a symbol of `axis` stands for; None of others."""
        found = self._axes.get(value.get_id())
        return found[1] if found is not None and found[2] == rank else None

    def either(self, condition: Any, one: Any, other: Any) -> Any:
        """Return one of two sizes by a condition."""
        if isinstance(condition, bool):
            return one if condition else other
        return self.z3.If(condition, one, other)

    def concrete(self, value: Size, low: int, end: int) -> int:
        """Return the number that a size is; it must lie in a range."""
        if isinstance(value, int):
            if not low <= value < end:
                raise DeadEndError
            return value
        for number in range(low, end):
            if self.decide(value == number):
                return number
        raise DeadEndError

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget the assumptions made inside."""
        self.solver.push()
        try:
            yield
        finally:
            self.solver.pop()

    @contextmanager
    def opened(self, closed: bool = False) -> Iterator[None]:
        """Allow, or forbid, further assumptions."""
        before, self.closed = self.closed, closed
        try:
            yield
        finally:
            self.closed = before

    # ---- element types and operator sets ----

    def type_names(self, kind: Type) -> frozenset[str]:
        """Return the names of the types that one may still be."""
        return frozenset(name for opset, name in kind.root()._domain if opset in self.opsets)

    def restrict(self, kind: Type, pairs: frozenset[tuple[int, str]]) -> None:
        """Go on with some pairs of operator set and type."""
        root = kind.root()
        root._domain &= pairs
        if not self.type_names(root):
            raise DeadEndError

    def unify(self, one: Type, other: Type) -> None:
        """Go on where two types are equal."""
        first, second = one.root(), other.root()
        if first is not second:
            first._domain &= second._domain
            second._parent = first
            if not self.type_names(first):
                raise DeadEndError

    def allows(self, kind: Type, pairs: frozenset[tuple[int, str]]) -> bool:
        """Whether each type that one may be is among the pairs."""
        return all(pair in pairs for pair in kind.root()._domain if pair[0] in self.opsets)

    def type_in(self, kind: Type, names: frozenset[str] | set[str]) -> bool:
        """Whether a type is one of these."""
        root = kind.root()
        found = self.type_names(root)
        if not found:
            raise DeadEndError
        inside = found & names
        if not inside or inside == found:
            return bool(inside)
        taken = self.choose(2) == 0
        root._domain = frozenset(pair for pair in root._domain if (pair[1] in names) == taken)
        return taken

    def type_name(self, kind: Type) -> str:
        """Return the one type that it is; other paths take others."""
        for name in sorted(self.type_names(kind)):
            if self.type_in(kind, {name}):
                return name
        raise DeadEndError

    def opset_where(self, test: Callable[[int], bool]) -> bool:
        """Whether the operator set meets a condition."""
        inside = [each for each in self.opsets if test(each)]
        if not inside or len(inside) == len(self.opsets):
            return bool(inside)
        taken = self.choose(2) == 0
        self.opsets = [each for each in self.opsets if test(each) == taken]
        return taken


def explore(run: Callable[[Path], None], deadline: float) -> int:
    """Run a computation on every path; return their number.

    Raises
    ------
    UnprovenError
        A path raised it, or there are too many paths.
    """
    script: list[list[int]] = []
    for count in range(1, _MOST_PATHS):
        with suppress(DeadEndError):
            run(Path(script, deadline))
        while script and script[-1][0] + 1 >= script[-1][1]:
            script.pop()
        if not script:
            return count
        script[-1][0] += 1
    raise OutOfTimeError(f"there are more than {_MOST_PATHS} cases")
