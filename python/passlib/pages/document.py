"""The HTML document: data, styles and scripts in one file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from passlib.errors import printable

_ASSETS: Final = Path(__file__).with_name("assets")

_SCRIPTS: Final = (
    "dagre.min.js",
    "graph.js",
    "blocks.js",
    "layout.js",
    "canvas.js",
    "panel.js",
    "page.js",
)
"""In order of dependency."""


def document(title: str, content: Mapping[str, Any]) -> str:
    """Return a page as a self-contained HTML document.

    Parameters
    ----------
    content : mapping
        JSON values: ``graphs``, see `graphs_of`; ``compares``, whether there are two sides;
        ``noted``, whether nodes have notes; ``facts`` (pairs of texts) and ``tables`` (``title``,
        ``columns`` and ``rows``) for the left column.
    """
    # Escape end tags and comments in the script.
    data = json.dumps(
        _shown({"title": title, **content}), ensure_ascii=False, separators=(",", ":")
    )
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    parts = {
        "@TITLE@": escape(printable(title)),
        "@STYLE@": _asset("page.css"),
        "@SCRIPT@": "\n".join(map(_asset, _SCRIPTS)),
        "@DATA@": data,
    }
    # Replace all at once: a title may contain a placeholder.
    return re.sub("|".join(parts), lambda place: parts[place[0]], _asset("page.html"))


def framed(title: str, content: Mapping[str, Any], height: int = 600) -> str:
    """Return a page as an iframe for another page, such as a notebook.

    ``height`` is in pixels.
    """
    name = escape(printable(title))
    return (
        f'<iframe title="{name}" style="width: 100%; height: {height}px; border: 0" '
        f'srcdoc="{escape(document(title, content))}"></iframe>'
    )


def _shown(value: Any) -> Any:
    """Escape all texts, including keys, with `printable`."""
    if isinstance(value, str):
        return printable(value, keep="\n\t")
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return list(map(_shown, value)) if isinstance(value, (list, tuple)) else value


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text("utf-8")
