"""Proofs of rules for all sizes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.proof.meanings import BY_ELEMENT
from passlib.proof.paths import (
    MOST_AXES,
    DeadEndError,
    OutOfTimeError,
    Path,
    SkippedError,
    UnprovenError,
    explore,
)
from passlib.proof.sides import Match, compare, compare_failures

NEWEST = 23


@dataclass(frozen=True)
class Proof:
    """The result of a proof; `reason` is empty if the rule is proven."""

    reason: str
    cases: int
    bounds: tuple[str, ...] = ()
    is_late: bool = False
    """Whether time was short."""
    is_settled: bool = True
    """Whether no rank or length was chosen after the match was built."""


def prove(rule: Any, limit: float = 30.0) -> Proof:
    """Prove a rule on all paths.

    Parameters
    ----------
    rule : Rule
    limit : float
        Seconds of processor time. Once it is proven for small ranks, a sixth of them counts.
    """
    start = time.process_time()
    deadline = start + limit
    # Operators of a family are proven at once, or each alone if their names count.
    joins = any(len(each["names"]) > 1 for each in _operations(rule.sides, ("left",)))
    cases, most, proven = 0, 0, -1
    bounds: set[str] = set()
    # Small ranks first: if time is not enough for all, they are what is proven.
    for most_axes in (2,) if _is_by_axis(rule.sides) else (2, 3, 4, MOST_AXES):
        found = _prove(rule, deadline, most_axes, proven, joins=joins)
        if found.reason and joins and not found.is_late:
            joins, proven = False, -1
            found = _prove(rule, deadline, most_axes, proven, joins=joins)
        if proven >= 0 and not found.is_settled and not found.is_late:
            proven = -1
            found = _prove(rule, deadline, most_axes, proven, joins=joins)
        if found.is_late and cases:
            bounds.add(f"ranks up to {most}")
            break
        if found.reason:
            return found
        cases = found.cases + (cases if proven >= 0 else 0)
        most, proven = most_axes, most_axes if found.is_settled else -1
        if cases:
            deadline = start + limit / 6
        bounds.update(found.bounds)
    first = min(_opsets(rule))
    if first > NEWEST:
        bounds.add(f"operator set {first}")
    if not cases:
        return Proof("no model is known that it changes", 0)
    return Proof("", cases, tuple(sorted(each.format(most=most) for each in bounds)))


def _prove(rule: Any, deadline: float, most_axes: int, proven: int, *, joins: bool) -> Proof:
    """Prove a rule for ranks and lengths up to `most_axes`; those up to `proven` are left out."""
    sides = rule.sides
    reached = 0
    is_settled = True
    bounds: set[str] = set()

    def run(path: Path) -> None:
        nonlocal reached, is_settled
        path.opsets = list(opsets)
        path.joins = joins
        path.exact = rule.exact
        path.most_axes = most_axes
        path.unordered = unordered
        match = Match(path, sides)
        match.build_left()
        match.assume_conditions()
        if path.highest <= proven or not path.possible(True):
            raise DeadEndError
        path.is_settled = True
        fails = False
        if match.left.conditions:
            # Where the pattern fails, the replacement must fail; elsewhere it must be equal.
            fails = not rule.drops_check and path.choose(2) == 1
            if not fails:
                for condition in match.left.conditions:
                    path.assume(condition)
                if not path.possible(True):
                    raise DeadEndError
        try:
            with path.opened(closed=True):
                match.build_right()
                compare_failures(match) if fails else compare(match, exact=rule.exact)
        except SkippedError:
            return
        except DeadEndError:
            if not path.possible(True):
                raise
            raise UnprovenError("the replacement is not valid in each case") from None
        finally:
            is_settled = is_settled and not path.is_late
        reached += 1
        bounds.update(path.bounds)

    try:
        opsets = _opsets(rule)
        unordered = frozenset({"axes"}) if _is_unordered(sides) else frozenset()
        explore(run, deadline)
    except OutOfTimeError as error:
        return Proof(f"{error} after {reached} cases", reached, is_late=True)
    except UnprovenError as error:
        return Proof(str(error), reached)
    except RecursionError:
        return Proof("the terms are too deep", reached)
    return Proof("", reached, tuple(sorted(bounds)), is_settled=is_settled)


def _opsets(rule: Any) -> list[int]:
    """Return the operator sets of ONNX for which a rule is."""
    first, last = 1, NEWEST
    for domain, low, high in rule.sets:
        if domain:
            continue
        # A rule for newer sets is proven for its first one.
        first, last = low, max(low, min(high or NEWEST, NEWEST))
    return list(range(first, last + 1))


def _is_by_axis(sides: Any) -> bool:
    """Whether all that a rule demands and claims of shapes is a claim of each axis for itself.

    Operators of elements and Expand join sizes axis by axis, and each condition demands something
    of every axis: what holds for all sizes of two axes, each of which an input may have or lack,
    holds for any number of them.
    """
    names = {name for name, _ in sides["where"] if name}
    if names:
        return False
    for expression in _operations(sides):
        kind, (name, *_) = expression["kind"], expression["names"] or [""]
        if kind == "operation":
            if not all(each in BY_ELEMENT or each.startswith("@") for each in expression["names"]):
                return False
            if any(not _is_free(each[5]) for each in expression["settings"] if each[5]):
                return False
        elif kind == "constant" and (
            name not in ("fold", "either", "like") or not all(map(_is_free, expression["terms"]))
        ):
            return False
    return all(_is_of_each_axis(term) for _, term in sides["where"])


_FREE = frozenset(
    ["type", "value", "given", "all", "any", "is_real", "is_whole", "lossless", "finite", "signbit"]
)


def _is_free(term: Any) -> bool:
    """Whether a term depends on no shape."""
    kind, text, children = term
    return (kind != "call" or text in _FREE) and all(map(_is_free, children))


def _is_of_each_axis(term: Any) -> bool:
    """Whether a condition demands something of every axis, and nothing of several together."""
    kind, text, children = term
    if _is_free(term):
        return True
    if kind == "operator" and text == "and":
        return all(map(_is_of_each_axis, children))
    if kind == "operator" and text == "or":
        bound = [child for child in children if not _is_free(child)]
        return len(bound) == 1 and _is_of_each_axis(bound[0])
    if kind == "call" and text in ("broadcasts", "scalar"):
        return all(child[0] in ("name", "starred") for child in children)
    if kind == "operator" and text == "=":
        if children[0][:2] == ("call", "rank"):
            return bool(children[1][:2] == ("integer", 0))
        return all(
            child[:2] in (("call", "shape"), ("call", "broadcast"))
            and all(each[0] in ("name", "starred") or _is_free(each) for each in child[2])
            for child in children
        )
    return False


_THROUGH = frozenset({"normalize", "concat", "select"})
_ABSORBING = frozenset({"sorted", "len", "product", "all", "without"})


def _is_unordered(sides: Any) -> bool:
    """Whether the order of axes that the pattern binds counts for nothing in the rule.

    It counts for nothing in Reduce, Squeeze and Unsqueeze themselves.
    """
    carried = {
        setting[4]
        for expression in _operations(sides)
        for setting in expression["settings"]
        if setting[0] == "axes" and setting[1] == "bind"
    }
    named: set[str] = set()

    def counts(term: Any) -> bool:
        """Whether the value of a term depends on the order, or is in it."""
        kind, text, children = term
        if kind == "attribute":
            return text in carried
        if kind == "name":
            return text in named
        if kind == "call" and text in _ABSORBING:
            # All but the places of `without` may be in the order.
            inner = children[:1] if text == "without" else ()
            return any(map(counts, inner)) or any(_breaks(child) for child in children)
        return any(map(counts, children))

    def _breaks(term: Any) -> bool:
        """Whether a term is more than the items in their order."""
        kind, text, children = term
        if kind == "call" and text in _THROUGH:
            # An item that is chosen by its place depends on the order.
            if text == "select" and counts(children[0]):
                return True
            return any(map(_breaks, children))
        if kind == "call" and text in _ABSORBING:
            return counts(term)
        if kind == "operator" and text == "index":
            return counts(children[0])
        return kind == "operator" and text not in ("=", "<", ">", "<=", ">=") and counts(term)

    for name, term in sides["where"]:
        if name:
            if counts(term):
                if _breaks(term):
                    return False
                named.add(name)
        elif counts(term):
            return False
    for expression in _operations(sides, ("right",)):
        for key, relation, _, _, _, term in expression["settings"]:
            if relation == "equal" and counts(term) and (key != "axes" or _breaks(term)):
                return False
        if any(counts(term) for term in expression["terms"]):
            return False
    return True


def _operations(sides: Any, which: Sequence[str] = ("left", "right")) -> Iterator[Any]:
    pending = [expression for side in which for _, _, expression in sides[side]]
    while pending:
        each = pending.pop()
        yield each
        pending += [*each["inputs"], *each["alternatives"]]
