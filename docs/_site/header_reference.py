"""The directive ``header-reference``: the manual part of lib_api.h, from its comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HEADER = Path(__file__).parents[2] / "include" / "lib_api.h"
_BANNER = "// " + "=" * 96
_BODIES = "Bodies"
# What a declaration declares: a macro, a type, the name before a type's semicolon, a function.
_NAMES = (
    re.compile(r"^#define (\w+)", re.MULTILINE),
    re.compile(r"^(?:template <[^>]*>\n)?(?:class|struct|enum|namespace) (\w+)", re.MULTILINE),
    re.compile(r"^typedef [^;{]*?(?:\(\*(\w+)\)|(\w+);)", re.MULTILINE),
    re.compile(r"^(?!#| |//|typedef|namespace)[\w:<>,*& ]*?[ *&](\w+)\(", re.MULTILINE),
)
_NAMESPACES = re.compile(r"^(?:namespace \w+ \{|\}  // namespace \w+)\n", re.MULTILINE)


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each section between banners."""
    parts = text.split(_BANNER)
    for title, body in zip(parts[1::2], parts[2::2], strict=False):
        lines = [line.removeprefix("//").removeprefix(" ") for line in title.strip().splitlines()]
        if lines[0].startswith(_BODIES):
            return
        yield "\n".join(lines), body


def items(body: str) -> Iterator[tuple[str, str]]:
    """Yield comment and code, one pair for each run of comments at the left margin."""
    comment: list[str] = []
    code: list[str] = []
    for line in [*_NAMESPACES.sub("", body).splitlines(), "///"]:
        if line.startswith("///"):
            if code:
                yield "\n".join(comment), "\n".join(code).strip()
                comment, code = [], []
            comment.append(line.removeprefix("///").strip())
        elif line.strip() or code:
            code.append(line)


def names(code: str) -> list[str]:
    """Return the names that a piece of code declares, in its order, each once.

    Helpers of macros, whose names end in an underscore, are left out.
    """
    matches = (match for pattern in _NAMES for match in pattern.finditer(code))
    found = sorted((match.start(), match[match.lastindex or 1]) for match in matches)
    return list(dict.fromkeys(name for _, name in found if not name.endswith("_")))


class HeaderReference(SphinxDirective):
    """Show the header's sections with their declarations."""

    def run(self) -> list[nodes.Node]:
        """Return a section of the page for each of the header."""
        self.env.note_dependency(str(HEADER))
        return [self._section(*each) for each in sections(HEADER.read_text("utf-8"))]

    def _section(self, title: str, body: str) -> nodes.Node:
        title, _, rest = title.partition("\n")
        section = nodes.section(ids=[nodes.make_id(f"header-{title}")])
        section += nodes.title(text=title)
        if rest:
            text = rest.strip("\n")
            section += nodes.literal_block(text, text, language="text")
        for comment, code in items(body):
            declared = names(code)
            if declared:
                part = nodes.section(ids=[nodes.make_id(f"cpp-{declared[0]}")])
                part += nodes.title(text=", ".join(declared[:4]))
                section += part
            else:
                part = section
            if comment:
                part += self.parse_text_to_nodes(comment.replace("*", "\\*"))
            if code:
                block = nodes.literal_block(code, code)
                block["language"] = "c++"
                part += block
        return section


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("header-reference", HeaderReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
