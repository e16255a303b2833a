"""Reading of MXNet symbol files, and the upgrade of old ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import passlib._core as _core
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects.json_text import parse_plain
from passlib.errors import FormatError, GraphError, UnsoundFileError
from passlib.files.limits import current_limits
from passlib.files.regular import memory_named, read_regular
from passlib.graph.attributes import parse_optional_ints
from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.graph.plain import freeze, thaw
from passlib.mxnet import schema
from passlib.mxnet.schema import Operator
from passlib.mxnet.schema.operator import HIDDEN
from passlib.mxnet.schema.registry import complete

CURRENT = 10901
"""The version of the files that passlib writes, 1.9.1: 10000 major + 100 minor + patch."""

UNKNOWN = 800
"""The version of files that state none: MXNet 0.8 or earlier."""

_INPUTS_COMPLETE = 900
_INITIALISERS_SET = 904
_AXIS_OPTIONAL = 905


class _Draft:
    """A node while its attributes and inputs may still change."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.attrs = dict(node.attrs)
        self.added: list[_Draft] = []

    @property
    def changed(self) -> bool:
        return bool(self.added) or self.attrs != dict(self.node.attrs)


def upgrade(entries: Sequence[Entry], version: int) -> tuple[Entry, ...]:
    """Bring a graph to the conventions of MXNet 1.9.1.

    Parameters
    ----------
    entries : sequence of Entry
        The heads of the graph, which is not changed.
    version : int
        The version that saved it, such as 10500 for 1.5.0; `UNKNOWN` if the file states none.

    Returns
    -------
    tuple of Entry
        The heads of the new graph, which shares all unchanged nodes; the same entries if nothing
        changed.
    """
    if version >= CURRENT:
        return tuple(entries)
    order = postorder(entry.node for entry in entries)
    drafts = {id(node): _Draft(node) for node in order}
    for node in order:
        _change(drafts[id(node)], drafts, version)
    return _rebuild(entries, order, drafts)


def _change(draft: _Draft, drafts: dict[int, _Draft], version: int) -> None:
    node, attrs = draft.node, draft.attrs
    operator = None if node.is_variable else schema.find(node.op)
    names = operator.input_names(attrs) if operator else ()
    inputs = [drafts[id(entry.node)] for entry in node.inputs]
    later = _move_hidden(attrs, names, inputs)
    if operator is None:
        return
    if version < _INPUTS_COMPLETE and operator.makes_variables:
        for name in names[len(inputs) :]:
            variable = Node(VARIABLE, f"{node.name}_{name}", num_outputs=1)
            added = _Draft(variable)
            added.attrs = {k: v for k, v in attrs.items() if k not in later}
            draft.added.append(added)
            inputs.append(added)
        # MXNet reads past the end of the inputs here and crashes.
        for key in later:
            _move(attrs, key, names, inputs)
    if version < _INITIALISERS_SET:
        _set_initialisers(operator, names, inputs)
    no_axis = operator.name in ("argmax", "argmin") and attrs.get("axis") == "-1"
    if version < _AXIS_OPTIONAL and no_axis:
        del attrs["axis"]


def _move_hidden(attrs: dict[str, str], names: Sequence[str], inputs: list[_Draft]) -> list[str]:
    """Rename or move hidden attributes; return those whose input does not exist yet."""
    later: list[str] = []
    for hidden in HIDDEN:
        if hidden in attrs:
            attrs[f"__{hidden}__"] = attrs.pop(hidden)
        for key in [key for key in attrs if key.endswith(f"_{hidden}")]:
            if key[: -len(hidden) - 1] in names[len(inputs) :]:
                later.append(key)
            else:
                _move(attrs, key, names, inputs)
    return later


def _move(attrs: dict[str, str], key: str, names: Sequence[str], inputs: list[_Draft]) -> None:
    hidden = next(hidden for hidden in HIDDEN if key.endswith(f"_{hidden}"))
    owner = key[: -len(hidden) - 1]
    if owner in names:
        variable = inputs[names.index(owner)]
        # The output of an operator has no such attribute: it stays on this node.
        if variable.node.is_variable:
            variable.attrs[f"__{hidden}__"] = attrs.pop(key)


def _set_initialisers(operator: Operator, names: Sequence[str], inputs: Sequence[_Draft]) -> None:
    for name, variable in zip(names, inputs, strict=False):
        value = operator.initial.get(name)
        if value is not None and variable.node.is_variable:
            variable.attrs.setdefault("__init__", value)


def _rebuild(
    entries: Sequence[Entry], order: Sequence[Node], drafts: dict[int, _Draft]
) -> tuple[Entry, ...]:
    new: dict[int, Node] = {}
    for node in order:
        draft = drafts[id(node)]
        inputs = tuple(entry._replace(node=new[id(entry.node)]) for entry in node.inputs)
        deps = tuple(new[id(dep)] for dep in node.control_deps)
        moved = any(a.node is not b.node for a, b in zip(inputs, node.inputs, strict=True))
        moved = moved or any(a is not b for a, b in zip(deps, node.control_deps, strict=True))
        if not moved and not draft.changed:
            new[id(node)] = node
            continue
        added = tuple(
            Entry(Node(VARIABLE, d.node.name, d.attrs, num_outputs=1)) for d in draft.added
        )
        new[id(node)] = Node(
            node.op, node.name, draft.attrs, inputs + added, node.num_outputs, deps, node.subgraphs
        )
    return tuple(entry._replace(node=new[id(entry.node)]) for entry in entries)


_SHAPE: Final = "__shape__"

ATTRIBUTES: Final = "attrs"
"""The key of the file that holds the graph's own attributes, the version among them."""


def read_symbol(text: str | bytes) -> tuple[_core.Graph, dict[str, str], int]:
    """Read a symbol of any version, and upgrade an old one by MXNet's rules.

    In NumPy mode, a variable's ``__shape__`` in a file of the other mode gets the spelling of this
    mode: -1 for an unknown dimension, which was 0, and None for an unknown rank, which was ().
    Raises `FormatError` if the text is not JSON or not a graph, and the message has line and
    column; or graphs are nested more deeply than `passlib.limits` permits.

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
    """Refuse graphs nested so deeply that other functions would be slow or fail."""
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

    Raises `FormatError` if it is no object.
    """
    try:
        found = parse_plain(attributes.get(ATTRIBUTES, "{}"))
    except FormatError as error:
        raise error.within("the top-level 'attrs'") from error
    if not isinstance(found, dict):
        raise FormatError("the top-level 'attrs' must be an object")
    return found


def default_attributes() -> dict[str, str]:
    """Return the top-level attributes of a new symbol, as JSON by key."""
    return {ATTRIBUTES: json.dumps({"mxnet_version": ["int", CURRENT]})}
