"""docs/troubleshooting.md quotes messages that exist."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from places import ROOT

PAGE = ROOT / "docs" / "troubleshooting.md"
ROWS = [line.split(" | ")[0].removeprefix("| ") for line in PAGE.read_text("utf-8").split("\n")]
MESSAGES = [row.strip("`") for row in ROWS if row.startswith("`")]


@cache
def texts() -> str:
    """Return all texts of the sources, with the parts of f-strings joined."""
    found = []
    for path in (ROOT / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (
                    part.value if isinstance(part, ast.Constant) else "…" for part in node.values
                )
                found.append("".join(map(str, parts)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    for path in [*(ROOT / "cpp").rglob("*.cc"), *(ROOT / "header").glob("*.h")]:
        joined = re.sub(r'"\s*\n\s*"', "", path.read_text("utf-8"))
        found += re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)
    return "\n".join(found)


def test_the_page_has_messages() -> None:
    assert len(MESSAGES) > 20


@pytest.mark.parametrize("message", MESSAGES)
def test_the_message_exists(message: str) -> None:
    """Each part between the names stands in a text of the sources."""
    parts = [part.strip(" ,;:") for part in message.split("…")]
    assert any(len(part) > 6 for part in parts)
    for part in parts:
        # Messages of the dynamic loader are the system's.
        assert part in texts() or part == "undefined symbol", part
