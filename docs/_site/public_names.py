"""The directive ``public-names``: one page for each public name of a module."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from public_listing import lines
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class PublicNames(SphinxDirective):
    """Show signature and documentation of every public name of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the documentation of a module's names."""
        module = self.arguments[0]
        parent = nodes.section()
        self.state.nested_parse(StringList(list(lines(module)), source=module), 0, parent)
        return parent.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directive."""
    app.add_directive("public-names", PublicNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
