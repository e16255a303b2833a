"""What builds of the package ask for its readme: relative links lead to the repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["dynamic_metadata"]

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)]+)\)")


def dynamic_metadata(
    field: str, settings: Mapping[str, Any], project: Mapping[str, Any]
) -> dict[str, str]:
    """Return README.md, with the addresses of its links and pictures.

    Raises
    ------
    ValueError
        Something else than the readme is asked for.
    """
    if field != "readme" or settings:
        raise ValueError(f"{__name__} makes the readme, without settings, not {field!r}")
    source = str(project["urls"]["Source"])

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link[1] else "blob"
        return f"{link[1]}[{link[2]}]({source}/{kind}/main/{link[3]})"

    text = _LINK.sub(absolute, Path("README.md").read_text("utf-8"))
    return {"content-type": "text/markdown", "text": text}
