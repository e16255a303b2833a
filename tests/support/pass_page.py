"""The declared parts of docs/standard-passes.md: dialects, and options with their defaults.

Run ``.venv/bin/python tests/support/pass_page.py`` to write them again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import passlib
from passlib.library.declared import Declaration

PAGE = Path(__file__).parents[2] / "docs" / "standard-passes.md"

_BEGIN, _END = "<!-- declared -->", "<!-- described -->"
_SECTION = re.compile(rf"(?m)^## (\w+)\n\n(?:{_BEGIN}\n(?:.*\n)*?{_END}\n\n)?")


def documented() -> dict[str, Declaration]:
    """Return what the standard passes declare, by name."""
    passlib.library.load_standard()
    known = passlib.library.passes()
    return {name: known[name] for name in _SECTION.findall(PAGE.read_text()) if name in known}


def _declared(declaration: Declaration) -> str:
    dialects = ", ".join(declaration.dialects) or "all dialects"
    lines = [_BEGIN, f"{declaration.description} Models of: {dialects}.", ""]
    if declaration.options:
        lines += ["| option | |", "|---|---|"]
    for option in declaration.options:
        described = " ".join(option.description.split())
        lines.append(f"| `{option.name}={_shown(option.default)}` | {described} |")
    if declaration.options:
        lines.append("")
    return "\n".join([*lines, _END, "", ""])


def _shown(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else str(value)


def text() -> str:
    """Return the page with the parts that the passes declare now."""
    known = documented()

    def section(found: re.Match[str]) -> str:
        declaration = known.get(found[1])
        return found[0] if declaration is None else f"## {found[1]}\n\n{_declared(declaration)}"

    return _SECTION.sub(section, PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(text())
