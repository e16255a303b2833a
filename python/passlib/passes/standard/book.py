"""Groups of the rules that come with passlib, at work on a graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import passlib._core as _core
from passlib.library.python import Graph
from passlib.passes.rewriting import lent_arrays
from passlib.passes.rulebook import BOOKS, allocate, apply_rules, exchange, file_of
from passlib.passes.simplification import kept as assumed
from passlib.passes.standard.facts.running import fold, remove_unused


@cache
def _book() -> _core.RuleBook:
    """Return all rules that come with passlib as one book, whose patterns are compiled once."""
    texts = [place.read_text("utf-8") for place in sorted(BOOKS.glob("*.rules"))]
    return _core.RuleBook("\n".join(texts), "")


@cache
def _numbers() -> Mapping[str, Sequence[int]]:
    """Return the numbers of the rules of each group."""
    numbers: dict[str, list[int]] = {}
    for number, rule in enumerate(_book().rules):
        numbers.setdefault(rule["group"], []).append(number)
    return numbers


def apply_groups(graph: Graph, groups: Collection[str], kept: Collection[str]) -> None:
    """Apply the rules of groups until none applies; the operators with the names in kept stay."""
    numbers = sorted(number for group in groups for number in _numbers()[group])
    apply_rules(_book(), graph, numbers, fold, remove_unused, kept)


def apply_move(graph: Graph, move: str, kept: Collection[str], options: Mapping[str, Any]) -> None:
    """Run an algorithm of the core; the operators with the names in kept stay."""
    known = {"large_sizes": True, "empty_errors": True, **(assumed() or {})}
    large = known["large_sizes"] and options.get("large_sizes", True)
    made, gone = _core.run_move(
        move,
        graph,
        graph.attributes,
        lent_arrays(graph),
        file_of(graph),
        _core.Assumptions(large, known["empty_errors"]),
        set(kept),
        allocate,
        dict(options),
    )
    exchange(graph, gone, made)
