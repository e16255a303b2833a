"""What a page shows of one model, or of two."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from passlib.graph.node import VARIABLE
from passlib.pages.graphs import Side, graphs_of

MOST_IN_NOTEBOOKS: Final = 3000
"""Nodes of graphs that notebooks draw; larger ones would make them slow to open."""


def content_of(
    after: Side,
    before: Side | None = None,
    facts: Sequence[tuple[str, str]] = (),
    tables: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of a page, as `passlib.pages.document` takes it.

    Parameters
    ----------
    after : Side
    before : Side, optional
        What to compare it with.
    facts : sequence of (str, str)
        Are listed first.
    tables : sequence of dict
        Each with ``title``, ``columns`` and ``rows``; a table of the operators comes last.
    """
    return {
        "graphs": graphs_of(after, before),
        "compares": before is not None,
        "facts": [list(pair) for pair in facts],
        "tables": [*tables, _operators(after, before)],
    }


def _operators(after: Side, before: Side | None) -> dict[str, Any]:
    counts = [Counter(side.graph.graph.operators()) for side in (before, after) if side is not None]
    names = sorted({name for count in counts for name in count} - {VARIABLE})
    rows: list[list[Any]] = [[name, *(count[name] for count in counts)] for name in names]
    rows.sort(key=lambda row: -row[-1])
    total = ["total", *(sum(count[name] for name in names) for count in counts)]
    columns = ["operator", "before", "after"] if before is not None else ["operator", "count"]
    return {"title": "Operators", "columns": columns, "rows": [*rows, total]}
