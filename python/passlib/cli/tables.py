"""Tables and JSON on a terminal, with rich if it is installed."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Sequence
from typing import Any

from passlib.errors import printable


def json_text(value: Any) -> str:
    """Return indented JSON; escape control characters. Numbers that are not finite are null."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(value, default=str), parse_constant=_null)
        text = json.dumps(finite, indent=2, ensure_ascii=False)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text) + "\n"


def _null(name: str) -> None:
    """Stand for a number that JSON does not have."""


def print_json(value: Any) -> None:
    """Print a value as indented JSON."""
    sys.stdout.write(json_text(value))


def print_table(titles: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table with right-aligned numbers; print nothing without rows.

    Empty titles are not printed.
    """
    if not rows:
        return
    texts = [[_text(item) for item in row] for row in rows]
    right = [
        all(isinstance(row[i], (int, float)) or row[i] in ("", None) for row in rows)
        for i in range(len(titles))
    ]
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        _print_rich(titles, texts, right)
        return
    widths = [max(map(len, column)) for column in zip(titles, *texts, strict=True)]
    for line in (titles, *texts) if any(titles) else texts:
        cells = [
            item.rjust(width) if is_right else item.ljust(width)
            for item, width, is_right in zip(line, widths, right, strict=True)
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def _print_rich(
    titles: Sequence[str], texts: Sequence[Sequence[str]], right: Sequence[bool]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=any(titles))
    for title, is_right in zip(titles, right, strict=True):
        table.add_column(title, justify="right" if is_right else "left", overflow="fold")
    for row in texts:
        table.add_row(*(Text(item) for item in row))
    Console().print(table)


def _text(item: Any) -> str:
    if item is None:
        return ""
    if isinstance(item, float):
        return f"{item:.3g}"
    if isinstance(item, int) and not isinstance(item, bool):
        return f"{item:,}"
    return printable(item)


def print_gaps(sentences: Sequence[str]) -> None:
    """Print what the inputs of a comparison do not show."""
    for each in sentences:
        sys.stdout.write(f"not covered: {each}\n")


def print_uncovered(sentences: Sequence[str], *, as_json: bool) -> None:
    """Print what the inputs of a command do not show that found nothing."""
    if as_json:
        print_json({"not_covered": list(sentences)})
    else:
        print_gaps(sentences)
