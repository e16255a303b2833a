"""The upgrade of old symbol files: how MXNet 1.9.1 changes a graph that an earlier release saved.

The rules are those of MXNet's loader, each for files up to some release:

- any earlier one: bare ``ctx_group``, ``lr_mult``, ``wd_mult``, ``force_mirroring`` and
  ``mirror_stage`` become ``__ctx_group__`` and so on; ``weight_lr_mult`` on an operator becomes
  ``__lr_mult__`` on the variable at its input ``weight``;
- before 0.9.0: inputs that the file omits become variables ``<node>_<input>``;
- before 0.9.4: variables at auxiliary inputs get their initialiser;
- before 0.9.5: ``argmax`` and ``argmin`` lose ``axis="-1"``, which meant no axis.
"""

from __future__ import annotations

from collections.abc import Sequence

from passlib.graph.node import VARIABLE, Entry, Node, postorder
from passlib.mxnet import schema
from passlib.mxnet.schema import Operator
from passlib.mxnet.schema.operator import HIDDEN

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
            node.op,
            node.name,
            draft.attrs,
            inputs + added,
            node.num_outputs,
            deps,
            node.subgraphs,
        )
    return tuple(entry._replace(node=new[id(entry.node)]) for entry in entries)
