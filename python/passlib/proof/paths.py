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

MOST_AXES: Final = 5
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


class _Assumptions:
    """Assumptions of a path: given to Z3's solver when a question needs it.

    Numbers that fit all assumptions answer most questions whether something is possible.
    """

    def __init__(self, z3: Any) -> None:
        self._z3 = z3
        self._solver: Any = None
        self._held: list[Any] = []
        self._levels: list[int] = []
        self._told: list[int] = []  # how many the solver has on each of its levels
        self._models: list[list[Any]] = []  # with how many assumptions each is known to meet

    def add(self, *conditions: Any) -> None:
        """Assume more."""
        self._held += conditions

    def push(self) -> None:
        """Begin assumptions that `pop` forgets."""
        self._levels.append(len(self._held))

    def pop(self) -> None:
        """Forget the assumptions since the last `push`."""
        del self._held[self._levels.pop() :]
        if len(self._told) > len(self._levels) + 1:
            self._told.pop()
            self._solver.pop()
        self._told[-1:] = [min(each, len(self._held)) for each in self._told[-1:]]
        for model in self._models:
            model[1] = min(model[1], len(self._held))

    def allow(self, condition: Any) -> bool:
        """Whether a condition may hold, too; True if Z3 does not know."""
        if isinstance(condition, bool):
            if not condition:
                return False
            condition = self._z3.BoolVal(True)
        if self._is_met(condition):
            return True
        solver = self._informed()
        solver.push()
        solver.add(condition)
        found = solver.check()
        if found == self._z3.sat:
            self._models = [[solver.model(), len(self._held)], *self._models[:3]]
        solver.pop()
        return bool(found != self._z3.unsat)

    def _is_met(self, condition: Any) -> bool:
        """Whether known numbers meet the condition and all assumptions."""
        fitting = []
        met = False
        for model in self._models:
            numbers, seen = model
            while seen < len(self._held) and self._holds(numbers, self._held[seen]):
                seen += 1
            if seen == len(self._held):
                model[1] = seen
                met = met or self._holds(numbers, condition)
                fitting.append(model)
            elif self._levels and seen >= self._levels[-1]:
                model[1] = seen
                fitting.append(model)  # it may fit again after `pop`
        self._models = fitting
        return met

    def _holds(self, numbers: Any, condition: Any) -> bool:
        if isinstance(condition, bool):
            return condition
        return bool(self._z3.is_true(numbers.eval(condition, model_completion=True)))

    def _informed(self) -> Any:
        if self._solver is None:
            self._solver = self._z3.Solver()
            self._solver.set("rlimit", _QUERY_STEPS)
            self._told = [0]
        ends = [*self._levels, len(self._held)]
        for level, end in enumerate(ends):
            if level == len(self._told):
                self._solver.push()
                self._told.append(self._told[-1])
            if self._told[level] < end and level == len(self._told) - 1:
                self._solver.add(*self._held[self._told[level] : end])
                self._told[level] = end
        return self._solver


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
        self.solver = _Assumptions(self.z3)
        self.opsets: list[int] = []
        self.bound: list[Any] = []
        self.closed = False
        """Whether the replacement is built: nothing more may be assumed."""
        self.bounds: set[str] = set()
        """Limits up to which the rule is proven."""
        self.most_axes = MOST_AXES
        """The largest rank, and the most items of a list."""
        self.highest = 0
        """The largest rank or length that `most_axes` bounds on this path."""
        self.is_settled = False
        """Whether the match is built; ranks that it leaves open are chosen later."""
        self.is_late = False
        """Whether a rank or length was chosen after that."""
        self.joins = False
        """Whether operators of a family are matched together."""
        self.reshaped: list[Sequence[Size]] = []
        """Shapes to which others are changed."""
        self.products: list[tuple[Size, Size]] = []
        """Sizes, and the products that conditions say they are."""
        self.exact = True
        """Whether every bit of the results counts."""
        self.unordered: frozenset[str] = frozenset()
        """Attributes whose order counts for nothing in the rule."""
        self.same_tensors: Callable[[Any, Any], bool] = lambda one, other: one is other
        """Whether two tensors are equal, bit for bit."""
        self._number = 0
        self._asked = 0
        self._axes: dict[int, tuple[Any, int, int]] = {}

    def choose(self, count: int) -> int:
        """Return a number below `count`; other runs return the others."""
        self._check_time()
        if self.place == len(self.script):
            self.script.append([0, count])
        taken = self.script[self.place][0]
        self.place += 1
        return taken

    def count(self) -> int:
        """Return a length that `most_axes` bounds; other runs return the others."""
        return self.counted(self.choose(self.most_axes + 1))

    def counted(self, number: int) -> int:
        """Note a rank or length that `most_axes` bounds."""
        self.highest = max(self.highest, number)
        self.is_late |= self.is_settled
        return number

    def _check_time(self) -> None:
        self._asked += 1
        if self._asked % 64 == 1 and time.process_time() > self.deadline:
            raise OutOfTimeError("the time limit is reached")

    def _recalled(self) -> bool | None:
        """Return the answer that an earlier run found at this place."""
        if self.place == len(self.script):
            return None
        self.place += 1
        return self.script[self.place - 1][0] == 1

    def _noted(self, answer: bool) -> bool:
        """Note an answer, so that runs that begin alike need not ask again."""
        self.script.append([int(answer), int(answer) + 1])
        self.place += 1
        return answer

    def pick(self, items: Sequence[Any]) -> Any:
        """Return one of the items."""
        if not items:
            raise DeadEndError
        return items[self.choose(len(items))] if len(items) > 1 else items[0]

    def decide(self, condition: Any) -> bool:
        """Whether a condition holds on this path; others take the other way."""
        if isinstance(condition, bool):
            return condition
        if self.place == len(self.script):
            self._check_time()
            condition = self.z3.simplify(condition)
            if self.z3.is_true(condition) or self.z3.is_false(condition):
                return not self._noted(not self.z3.is_true(condition))
            yes = self.solver.allow(condition)
            no = not yes or self.solver.allow(self.z3.Not(condition))
            if not yes and not self.solver.allow(True):
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
        known = self._recalled()
        if known is not None:
            return known
        self._check_time()
        return self._noted(self.solver.allow(condition))

    def proves(self, condition: Any) -> bool:
        """Whether a condition follows from the assumptions."""
        if isinstance(condition, bool):
            return condition
        known = self._recalled()
        if known is not None:
            return known
        self._check_time()
        condition = self.z3.simplify(condition, som=True)
        if self.z3.is_true(condition):
            return self._noted(True)
        against = True if self.z3.is_false(condition) else self.z3.Not(condition)
        return self._noted(not self.solver.allow(against))

    def same(self, one: Size, other: Size) -> bool:
        """Whether two sizes are equal, for all values of the symbols."""
        if isinstance(one, int) and isinstance(other, int):
            return one == other
        if one is other or (
            not isinstance(one, int) and not isinstance(other, int) and one.eq(other)
        ):
            return True
        known = self._recalled()
        return self.proves(one == other) if known is None else known

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

    def split_opsets(self, key: Callable[[int], Any]) -> None:
        """Go on with operator sets that are equal in something; other paths take others."""
        groups: dict[Any, list[int]] = {}
        for opset in self.opsets:
            groups.setdefault(key(opset), []).append(opset)
        self.opsets = self.pick(list(groups.values()))

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
