"""Reading of MXNet symbol files: NNVM's graph JSON with ``mxnet_version``.

Source of the format: MXNet 1.9.1's writer and its rules for files of older versions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects.json_text import parse_plain
from passlib.errors import FormatError, GraphError, UnsoundFileError
from passlib.files.limits import current_limits
from passlib.files.regular import memory_named, read_regular
from passlib.graph.attributes import parse_optional_ints
from passlib.graph.node import VARIABLE
from passlib.graph.plain import freeze, thaw
from passlib.mxnet.reading.legacy import CURRENT, UNKNOWN, upgrade
from passlib.mxnet.schema.registry import complete

_SHAPE: Final = "__shape__"

ATTRIBUTES: Final = "attrs"
"""The key of the file that holds the graph's own attributes, the version among them."""


def read_symbol(text: str | bytes) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol of any version, and upgrade an old one by MXNet's rules.

    In NumPy mode, a variable's ``__shape__`` in a file of the other mode gets the spelling of this
    mode: -1 for an unknown dimension, which was 0, and None for an unknown rank, which was ().

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
        The text is not JSON or not a graph, and the message has line and column; or graphs are
        nested more deeply than `passlib.limits` permits.
    """
    try:
        graph = _core.Graph.parse(text, lenient=True, ordered=True)
    except UnicodeEncodeError as error:
        raise FormatError(
            "half of a surrogate pair, which no file can hold", offset=error.start
        ) from error
    _check_depth(graph)
    attributes = graph.attributes()
    version = saved_version(attributes)
    respelt = is_np_shape() and not states_numpy_mode(attributes)
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
    if respelt:
        _spell_for_numpy(graph)
    return graph, attributes, version


def read_file(path: Path) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol file like `read_symbol`; the message of a FormatError has the path."""
    with memory_named(path):
        text = read_regular(path)
        try:
            return read_symbol(text)
        except FormatError as error:
            raise error.within(path) from error


def _spell_for_numpy(graph: _core.Graph) -> None:
    """Change the shapes of variables, in place, to how NumPy mode spells unknown sizes."""
    changed = {}
    for name, text in graph.variables_with(_SHAPE):
        try:
            sizes = parse_optional_ints(text) if text != "None" else None
        except ValueError:
            continue  # inference names the variable
        if sizes == ():
            changed[name] = "None"
        elif sizes is not None and 0 in sizes:
            changed[name] = "[" + ",".join(str(size or -1) for size in sizes) + "]"
    if changed:
        graph.set_node_attributes(
            [
                (number, _SHAPE, changed[node.name])
                for number, node in enumerate(graph.nodes())
                if node.op == VARIABLE and node.name in changed
            ]
        )


def _check_depth(graph: _core.Graph) -> None:
    """Refuse graphs that are nested too deeply: all that handles them would be slow or fail."""
    most = current_limits().graph_depth
    if graph.depth() > most:
        raise FormatError(
            f"graphs are nested in one another more than {most} levels deep; if the file is "
            f"trusted, read it inside passlib.limits(graph_depth=...)"
        )


def saved_version(attributes: Mapping[str, str]) -> int:
    """Return the MXNet version that wrote a file with these top-level attributes (JSON by key)."""
    found = saved(attributes)
    if "mxnet_version" not in found:
        return UNKNOWN
    stated = found["mxnet_version"]
    match stated:
        case ["int", version] if type(version) is int:
            return version
    shown = repr(stated)
    shown = shown[:40] + "..." * (len(shown) > 40)
    raise FormatError(f'"mxnet_version" must be ["int", number], not {shown}')


def states_numpy_mode(attributes: Mapping[str, str]) -> bool:
    """Whether MXNet's NumPy mode was on when a file with these attributes was written.

    A size of 0 is a size then, and an array may have no axes.
    """
    return saved(attributes).get("is_np_shape") in (["int", 1], ["bool", True])


def saved(attributes: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes of the graph that the file states, such as its version.

    Raises
    ------
    FormatError
        It is no object.
    """
    try:
        found = parse_plain(attributes.get(ATTRIBUTES, "{}"))
    except FormatError as error:
        raise error.within("the top-level 'attrs'") from error
    if not isinstance(found, dict):
        message = "the top-level 'attrs' must be an object"
        raise FormatError(message)
    return found


def default_attributes() -> dict[str, str]:
    """Return the top-level attributes of a new symbol, as JSON by key."""
    return {ATTRIBUTES: json.dumps({"mxnet_version": ["int", CURRENT]})}
