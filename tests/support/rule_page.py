"""The parts of docs/rules.md that are made from the core and the rules.

Run ``.venv/bin/python tests/support/rule_page.py`` to write them again.
"""

from __future__ import annotations

import re
from pathlib import Path

from passlib import _core
from passlib.passes.rules import books

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def _functions() -> str:
    rows = [f"| `{name}({given})` | {text} |" for name, given, text in _core.rule_functions()]
    return "\n".join(["| function | |", "|---|---|", *rows])


def _rules() -> str:
    rows = ["| rule | keeps | group | |", "|---|---|---|---|"]
    for book in books():
        for rule in book:
            kept = "every bit" if rule.exact else ""
            group = rule.group and f"`{rule.group}`"
            rows.append(f"| `{rule.name}` | {kept} | {group} | {rule.sentence} |")
    return "\n".join(rows)


def text() -> str:
    """Return the page with these parts as they are now."""
    page = PAGE.read_text()
    for name, made in (("functions", _functions()), ("rules", _rules())):
        found = rf"(?s)<!-- {name} -->\n.*?<!-- end of {name} -->"
        part = f"<!-- {name} -->\n{made}\n<!-- end of {name} -->"
        page = re.sub(found, lambda _, part=part: part, page)
    return page


if __name__ == "__main__":
    PAGE.write_text(text())
