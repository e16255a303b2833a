"""The page: data, styles and scripts in one file."""

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
"""In the order in which they use each other."""


def document(title: str, content: Mapping[str, Any]) -> str:
    """Return a page as one HTML document that loads nothing else.

    Parameters
    ----------
    title : str
    content : mapping
        What it shows, as JSON has it: ``graphs`` as of `graphs_of`; ``compares``, whether there
        are two sides; and for the column at the left ``facts`` (pairs of text), ``tables`` (each
        with ``title``, ``columns`` and ``rows``).

    Returns
    -------
    str
    """
    # No end tag and no comment may begin inside a script.
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
    # In one go: a title may have the name of another place.
    return re.sub("|".join(parts), lambda place: parts[place[0]], _asset("page.html"))


def framed(title: str, content: Mapping[str, Any], height: int = 600) -> str:
    """Return a page as a frame of another one, such as a notebook.

    Parameters
    ----------
    title, content
        As of `document`.
    height : int
        In pixels.
    """
    name = escape(printable(title))
    return (
        f'<iframe title="{name}" style="width: 100%; height: {height}px; border: 0" '
        f'srcdoc="{escape(document(title, content))}"></iframe>'
    )


def _shown(value: Any) -> Any:
    """Return what a page shows with escapes in all texts, keys too, see `printable`."""
    if isinstance(value, str):
        return printable(value, keep="\n\t")
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    return list(map(_shown, value)) if isinstance(value, (list, tuple)) else value


@cache
def _asset(name: str) -> str:
    return (_ASSETS / name).read_text("utf-8")
