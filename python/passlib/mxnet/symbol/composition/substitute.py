"""Substitution: variables of a graph replaced by the outputs of other graphs."""

from __future__ import annotations

from collections.abc import Mapping

from passlib.errors import GraphError, UnsupportedError, did_you_mean, listed
from passlib.graph.node import Entry, Node, postorder
from passlib.graph.plain import PlainGraph


def substitute(
    graph: PlainGraph, replacements: Mapping[str, PlainGraph], name: str | None = None
) -> tuple[Entry, ...]:
    """Replace variables by the outputs of other graphs; MXNet's ``symbol(x=other)``.

    Parameters
    ----------
    graph : PlainGraph
        Stays as it is; the new graph shares the nodes that need no change.
    replacements : mapping of str to PlainGraph
        For a variable's name a symbol of one output.
    name : str, optional
        New name of the node of the first output.

    Returns
    -------
    tuple of Entry
        The outputs of the new graph. Entry versions are kept, where MXNet counts them on.

    Raises
    ------
    GraphError
        No variable has that name, a replacement has several outputs, or an operator would have to
        write to something that is no variable.
    UnsupportedError
        A replacement is of another dialect.
    """
    for each in replacements.values():
        if isinstance(each, PlainGraph) and each.dialect != graph.dialect:
            raise UnsupportedError(
                f"a graph of the dialect {each.dialect!r} cannot be composed with others; such "
                "graphs are changed by passes"
            )
    order = postorder(entry.node for entry in graph.entries)
    new = _replaced(order, replacements)
    first = graph.entries[0].node
    for node in order:
        if id(node) in new:
            continue
        inputs = tuple(_follow(entry, new, node) for entry in node.inputs)
        # Control dependencies order nodes in time: they move to the replacement of a variable.
        deps = tuple(new[id(dep)].node for dep in node.control_deps)
        title = name if name and node is first else node.name
        same = all(a.node is b.node for a, b in zip(inputs, node.inputs, strict=True))
        same = same and all(a is b for a, b in zip(deps, node.control_deps, strict=True))
        if not same or title != node.name:
            outputs, nested = node.num_outputs, node.subgraphs
            made = Node(node.op, title, node.attrs, inputs, outputs, deps, nested)
            new[id(node)] = Entry(made)
        else:
            new[id(node)] = Entry(node)
    return tuple(_follow(entry, new, None) for entry in graph.entries)


def _replaced(order: list[Node], replacements: Mapping[str, PlainGraph]) -> dict[int, Entry]:
    names = {node.name for node in order if node.is_variable}
    for key, value in replacements.items():
        if not isinstance(value, PlainGraph):
            message = f"variable {key!r} can only be replaced by a symbol, not by {value!r}"
            raise TypeError(message)
        if key not in names:
            hint = did_you_mean(key, names)
            message = f"no variable is named {key!r}{hint}; there are {listed(sorted(names))}"
            raise GraphError(message)
        if len(value.entries) != 1:
            message = (
                f"variable {key!r} cannot be replaced by a symbol with {len(value.entries)} "
                f"outputs; choose one with [i]"
            )
            raise GraphError(message)
    return {
        id(node): replacements[node.name].entries[0]
        for node in order
        if node.is_variable and node.name in replacements
    }


def _follow(entry: Entry, new: Mapping[int, Entry], user: Node | None) -> Entry:
    target = new[id(entry.node)]
    if not entry.node.is_variable:
        return entry._replace(node=target.node)
    if target.node.is_variable:
        return entry._replace(node=target.node) if user else target
    if entry.version and user is not None:
        message = (
            f"node {user.name!r} writes to the variable {entry.node.name!r}, which therefore "
            f"cannot be replaced by the output of {target.node.name!r}"
        )
        raise GraphError(message)
    return target
