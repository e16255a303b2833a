"""From the text of an ARK file to a graph, with the template for writing it back."""

from __future__ import annotations

import copyreg
from functools import lru_cache
from typing import Any

import passlib._core as _core
from passlib.dialects.ark import operators, schema
from passlib.dialects.ark.reading.parts import read_parts
from passlib.dialects.ark.reading.template import Template
from passlib.dialects.ark.tensors import ITEM_SIZES
from passlib.dialects.json_text import MAX_DEPTH
from passlib.errors import GraphError

__all__ = ["read", "read_plain"]


def read(text: bytes) -> tuple[_core.Graph, Template]:
    """Read a model file or a plan file.

    Raises
    ------
    FormatError
        The text is not an ARK file.
    UnsoundFileError
        It contradicts itself or is empty.
    """
    plain = read_plain(text)
    if plain is not None:
        return plain
    parts = read_parts(text)
    root = parts.document.root
    template = Template(text, parts.graph, root["Rank"], root["WorldSize"])
    template.__dict__["parts"] = parts  # what the cached property would read again
    return parts.graph, template


def read_plain(text: bytes) -> tuple[_core.Graph, Template] | None:
    """Read a sound model file in the usual form, as `read_parts` would; None for any other."""
    found = _core.read_ark(text, _schema(), MAX_DEPTH)
    if found is None:
        return None
    graph, rank, world_size = found
    try:
        graph.check()
    except GraphError:
        return None  # `read_parts` reports it
    return graph, Template(text, graph, rank, world_size)


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    known = {name: schema.find(name) for name in schema.names()}
    return {
        "pure": {name for name, found in known.items() if found and not found.effects},
        "sinks": {name for name, found in known.items() if found and not found.writes},
        "item_sizes": ITEM_SIZES,
        "view": schema.TENSOR,
        "place": operators.ID,
        "outputs": operators.OUTPUTS,
        "reads": operators.READS,
        "effects": operators.EFFECTS,
        "is_virtual": operators.VIRTUAL,
        "parts": operators.PARTS,
    }


def _reread(text: bytes) -> Template:
    return read(text)[1]


# JSON objects hold their place in the text, which only the parser can set: pickle the text alone.
copyreg.pickle(Template, lambda template: (_reread, (template.text,)))
