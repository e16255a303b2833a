"""What the docstring of a pass says about it, in NumPy's style."""

from __future__ import annotations

import inspect
import re

_UNDERLINE = re.compile(r"-{3,}\s*")
_PARAMETER = re.compile(r"(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?")


def summary(docstring: str | None) -> str:
    """Return the first paragraph of a docstring on one line."""
    text = inspect.cleandoc(docstring or "")
    return " ".join(text.split("\n\n", 1)[0].split())


def descriptions(docstring: str | None) -> dict[str, str]:
    """Return the descriptions in the section ``Parameters`` of a docstring, by name.

    Source of the format: the numpydoc style guide.
    """
    lines = inspect.cleandoc(docstring or "").splitlines()
    starts = [
        i
        for i in range(len(lines) - 1)
        if lines[i].strip() == "Parameters" and _UNDERLINE.fullmatch(lines[i + 1])
    ]
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for number in range(starts[0] + 2 if starts else len(lines), len(lines)):
        line = lines[number]
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if line and not line[0].isspace():
            match = _PARAMETER.fullmatch(line)
            if match is None or _UNDERLINE.fullmatch(following):
                break
            names = [name.strip() for name in match.group(1).split(",")]
            found.update({name: [] for name in names})
        else:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(" ".join(text).split()) for name, text in found.items()}
