"""Tables as text, and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from passlib.errors import printable


@dataclass(frozen=True)
class Table:
    """Rows of text below titles."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    """As long as the titles. The first cell of each is a name; numbers are aligned to the right."""

    def __str__(self) -> str:
        lines = [self.titles, *(list(map(printable, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        right = [self._is_of_numbers(column) for column in range(len(self.titles))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if to_right else cell.ljust(width)
                for cell, width, to_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(title)}</th>" for title in self.titles)
        cells = [[escape(printable(cell)) for cell in row] for row in self.rows]
        right = [self._is_of_numbers(column) for column in range(len(self.titles))]
        rows = (
            "".join(
                f'<td style="text-align: {"right" if to_right else "left"}">{cell}</td>'
                for cell, to_right in zip(row, right, strict=True)
            )
            for row in cells
        )
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _is_of_numbers(self, column: int) -> bool:
        cells = [row[column] for row in self.rows if row[column]]
        return bool(cells) and all(cell[0].isdigit() for cell in cells)
