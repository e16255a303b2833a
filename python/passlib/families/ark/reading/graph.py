"""From the text of an ARK file to a graph, with the template for writing it back."""

from __future__ import annotations

import copyreg

import passlib._core as _core
from passlib.families.ark.reading.parts import read_parts
from passlib.families.ark.reading.template import Template


def read(text: bytes) -> tuple[_core.Graph, Template]:
    """Read a model file or a plan file.

    Raises
    ------
    FormatError
        The text is not an ARK file.
    UnsoundFileError
        It contradicts itself or is empty.
    """
    parts = read_parts(text)
    root = parts.document.root
    template = Template(text, parts.graph, root["Rank"], root["WorldSize"])
    template.__dict__["parts"] = parts  # what the cached property would read again
    return parts.graph, template


def _reread(text: bytes) -> Template:
    return read(text)[1]


# JSON objects hold their place in the text, which only the parser can set: pickle the text alone.
copyreg.pickle(Template, lambda template: (_reread, (template.text,)))
