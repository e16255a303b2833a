"""Reading of MXNet symbol files: NNVM's graph JSON with ``mxnet_version``.

Source of the format: MXNet 1.9.1's writer and its rules for files of older versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from passlib import _core
from passlib.dialects.mxnet.reading.legacy import CURRENT, UNKNOWN, upgrade
from passlib.dialects.mxnet.schema.outputs import complete
from passlib.errors import FormatError, GraphError, UnsoundFileError
from passlib.graph.native import freeze, thaw

__all__ = ["ATTRIBUTES", "default_attributes", "read_file", "read_symbol", "saved_version"]

ATTRIBUTES: Final = "attrs"
"""The key of the file that holds the graph's own attributes, the version among them."""


def read_symbol(text: str | bytes) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol of any version, and upgrade an old one by MXNet's rules.

    Parameters
    ----------
    text : str or bytes
        The graph keeps its memory alive. Strings may contain unescaped control characters, as
        MXNet writes them.

    Returns
    -------
    graph : _core.Graph
        Checked, in post-order from the heads, without nodes that no head needs, and with all
        numbers of outputs.
    attributes : dict of str to str
        Top-level attributes as JSON by key; the graph itself has none.
    version : int
        The MXNet version that wrote the file.

    Raises
    ------
    FormatError
        The text is not JSON or not a graph; the message has line and column.
    """
    graph = _core.Graph.parse(text, lenient=True, ordered=True)
    attributes = graph.attributes()
    version = saved_version(attributes)
    if version >= CURRENT:
        try:
            complete(graph)
        except GraphError as error:
            raise UnsoundFileError(str(error)) from error
    else:
        _, entries = thaw(graph, lambda nested: nested)
        graph = freeze(upgrade(entries, version), lambda nested: nested)
        complete(graph)
        attributes = default_attributes()
    return graph, attributes, version


def read_file(path: Path) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol file like `read_symbol`; the message of a FormatError has the path."""
    try:
        return read_symbol(path.read_bytes())
    except FormatError as error:
        raise error.within(path) from error


def saved_version(attributes: Mapping[str, str]) -> int:
    """Return the MXNet version that wrote a file with these top-level attributes (JSON by key)."""
    saved = json.loads(attributes.get(ATTRIBUTES, "{}"))
    if not isinstance(saved, dict):
        message = "the top-level 'attrs' must be an object"
        raise FormatError(message)
    if "mxnet_version" not in saved:
        return UNKNOWN
    match saved["mxnet_version"]:
        case ["int", int(version)]:
            return version
        case other:
            message = f'"mxnet_version" must be ["int", number], not {json.dumps(other)}'
            raise FormatError(message)


def default_attributes() -> dict[str, str]:
    """Return the top-level attributes of a new symbol, as JSON by key."""
    return {ATTRIBUTES: json.dumps({"mxnet_version": ["int", CURRENT]})}
