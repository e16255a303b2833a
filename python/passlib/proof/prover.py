"""Proofs of rules for all sizes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.proof.meanings import CHANGED
from passlib.proof.paths import (
    DeadEndError,
    OutOfTimeError,
    Path,
    SkippedError,
    UnprovenError,
    explore,
)
from passlib.proof.sides import Match, compare, compare_failures
from passlib.proof.tensors import schema_of

NEWEST = 23


@dataclass(frozen=True)
class Proof:
    """The result of a proof; `reason` is empty if the rule is proven."""

    reason: str
    cases: int
    bounds: tuple[str, ...] = ()


def prove(rule: Any, limit: float = 20.0) -> Proof:
    """Prove a rule on all paths.

    Parameters
    ----------
    rule : Rule
    limit : float
        Seconds of processor time.
    """
    sides = rule.sides
    deadline = time.process_time() + limit
    reached = 0
    bounds: set[str] = set()

    def run(path: Path) -> None:
        nonlocal reached
        path.opsets = list(path.pick(groups))
        path.unordered = unordered
        match = Match(path, sides)
        match.build_left()
        match.assume_conditions()
        if not path.possible(True):
            raise DeadEndError
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
        reached += 1
        bounds.update(path.bounds)

    try:
        groups = list(opset_groups(rule, sides))
        unordered = frozenset({"axes"}) if _is_unordered(sides) else frozenset()
        cases = explore(run, deadline)
    except OutOfTimeError as error:
        return Proof(f"{error} after {reached} cases", reached)
    except UnprovenError as error:
        return Proof(str(error), reached)
    except RecursionError:
        return Proof("the terms are too deep", reached)
    if not reached:
        return Proof("no model is known that it changes", cases)
    return Proof("", reached, tuple(sorted(bounds)))


def opset_groups(rule: Any, sides: Any) -> Iterator[Sequence[int]]:
    """Yield operator sets in which the rule's operators differ in types only.

    Raises
    ------
    UnprovenError
        The rule uses operators that are not ONNX's own.
    """
    first, last = 1, NEWEST
    for domain, low, high in rule.sets:
        if domain:
            raise UnprovenError(f"operators of {domain} have no meaning here")
        first, last = low, min(high or NEWEST, NEWEST)
    operators = sorted(set(_operators(sides)))
    groups: dict[Any, list[int]] = {}
    for opset in range(first, last + 1):
        signature = tuple(_signature(op, opset) for op in operators)
        groups.setdefault(signature, []).append(opset)
    yield from groups.values()


def _operators(sides: Any) -> Iterator[str]:
    for each in _operations(sides):
        if each["kind"] == "operation":
            yield from (name for name in each["names"] if not name.startswith("@"))


def _signature(op: str, opset: int) -> Any:
    schema = schema_of(op, "", opset)
    if schema is None:
        return None
    changes = sum(opset >= since for since in CHANGED.get(op, ()))
    defaults = tuple(
        (name, str(each.default_value))
        for name, each in sorted(schema.attributes.items())
        if name not in ("consumed_inputs", "axes", "saturate", "precision", "block_size",
                        "output_dtype", "round_mode")
    )  # fmt: skip
    return changes, defaults


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
