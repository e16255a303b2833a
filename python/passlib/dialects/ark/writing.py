"""From a graph back to an ARK file: what no pass touched stands as it stood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib import _core
from passlib.dialects.ark import arguments, schema
from passlib.dialects.ark.checks import require_fit, require_order
from passlib.dialects.ark.describing import Describer
from passlib.dialects.ark.document import GROUPS
from passlib.dialects.ark.items import Item
from passlib.dialects.ark.matmul_args import derived_arguments
from passlib.dialects.ark.operators import CONFIG, ID, FileOp
from passlib.dialects.ark.ordering import stable_order
from passlib.dialects.ark.printer import print_document
from passlib.dialects.ark.reading import Template
from passlib.dialects.ark.resolve import Resolved, Resolver
from passlib.dialects.ark.tensors import Tensor, compact_json, plain_json
from passlib.dialects.ark.units import arrange
from passlib.errors import GraphError, UnsupportedError
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node

__all__ = ["write"]


def write(template: Template, graph: _core.Graph, *, allow_removed: bool = False) -> bytes:
    """Write a graph in the form of the file that it was read from.

    Parameters
    ----------
    template : Template
    graph : _core.Graph
        Checked.
    allow_removed : bool
        Whether nodes with side effects may be missing.

    Raises
    ------
    GraphError
        A node with side effects is gone, nodes do not fit together, or the order of two accesses
        to the same memory is left open.
    UnsupportedError
        A new node cannot be described in this format.
    """
    if template.graph.equals(graph):
        return template.document.text
    described = graph.nodes()
    nodes = _nodes(described)
    claims = _claims(template, nodes)
    if not allow_removed:
        _require_effects(template, claims)
    resolver = _resolver(template)
    resolved = [resolver.resolve(node) for node in nodes]
    hidden = {str(t[2].get(ID)) for t in template.nodes} - template.ops.keys()
    heads = {described[position][1] for position, _, _ in graph.heads()}
    items = _items(template, resolved, claims, hidden, heads)
    if template.document.plan:
        for item in items:
            if item.original is None:
                raise UnsupportedError(
                    f"{blame(item.resolved.node)}: a plan places every op on processors, so none "
                    "can be added to it; run the pass on the model file"
                )
    values = [_op_value(template, item) for item in items]
    changed = [
        (item.resolved, value["Args"])
        for item, value in zip(items, values, strict=True)
        if item.original is None or value is not item.original.place.value
    ]
    document = template.document
    require_fit(changed, padding=document.variant == "v3" and not document.plan, rank=document.rank)
    if not template.document.plan:  # the order of a plan is that of its tasks on processors
        require_order([item.resolved for item in items], lambda: _before(template))
    return print_document(template.document, arrange(template, items, values))


def _nodes(described: Sequence[Any]) -> list[Node]:
    """Make the nodes, each after its inputs."""
    needs = [[*(i for i, _, _ in t[3]), *t[5]] for t in described]
    order = stable_order(len(described), needs, lambda i: f"node {described[i][1]!r}")
    made: dict[int, Node] = {}
    for position in order:
        op, name, attrs, inputs, count, deps, _ = described[position]
        made[position] = Node(
            op,
            name,
            attrs,
            [Entry(made[i], index, version) for i, index, version in inputs],
            count,
            [made[i] for i in deps],
        )
    return [made[position] for position in order]


def _before(template: Template) -> list[Resolved]:
    resolver = _resolver(template)
    resolved = [resolver.resolve(node) for node in _nodes(template.nodes)]
    return [one for one in resolved if one.node.attrs.get(ID) in template.ops]


def _claims(template: Template, nodes: Sequence[Node]) -> dict[int, FileOp]:
    """Find for each node the op of the file that it still is; the first of several gets it."""
    claims: dict[int, FileOp] = {}
    taken: set[str] = set()
    for node in nodes:
        key = node.attrs.get(ID, "")
        op = template.ops.get(key)
        if op is None or key in taken:
            continue
        if node.op == op.type or (node.is_variable and op.declares):
            claims[id(node)] = op
            taken.add(key)
    return claims


def _require_effects(template: Template, claims: Mapping[int, FileOp]) -> None:
    present = {op.place.key for op in claims.values()}
    gone = [
        f"{template.names[key]!r} ({op.type})"
        for key, op in template.ops.items()
        if op.effects and key not in present
    ]
    if gone:
        raise GraphError(
            f"these nodes have side effects, and the pass removed them: {', '.join(gone)}; "
            "nodes with the attribute '__effects__' must stay, or say allow_removed=True"
        )


def _resolver(template: Template) -> Resolver:
    tensors = [t for op in template.ops.values() for t in (*op.reads, *op.writes, *op.results)]
    keys: Sequence[str] = list(tensors[0].source) if tensors else ()
    return Resolver(
        Describer(
            oldest=template.document.variant == "v1",
            keys=keys,
            tensor_id=max((tensor.id for tensor in tensors), default=-1) + 1,
            buffer_id=max((tensor.buffer for tensor in tensors), default=-1) + 1,
        )
    )


def _items(
    template: Template,
    resolved: list[Resolved],
    claims: Mapping[int, FileOp],
    hidden: set[str],
    heads: set[str],
) -> list[Item]:
    """Choose what stands in the file, and add declarations for the memory of new nodes."""
    full = any(op.virtual for op in template.ops.values())
    unused = _unused_views(template, resolved, claims, heads)
    items = []
    for one in resolved:
        original = claims.get(id(one.node))
        if original is None and one.virtual and (not full or one.node.attrs.get(ID) in hidden):
            continue
        if id(one.node) in unused:
            continue
        if one.declares and full:
            memory = Node(schema.TENSOR, "")
            declared = Resolved(memory, (), (), one.writes)
            items.append(Item(declared, None))
        items.append(Item(one, original))
    return items


def _unused_views(
    template: Template,
    resolved: list[Resolved],
    claims: Mapping[int, FileOp],
    heads: set[str],
) -> set[int]:
    """Find declarations and views that lost their last user."""
    had_users = {i for t in template.nodes for i, _, _ in t[3]}
    used_before = {
        t[2].get(ID) for position, t in enumerate(template.nodes) if position in had_users
    }
    users: dict[int, int] = {}
    for one in resolved:
        for entry in one.node.inputs:
            users[id(entry.node)] = users.get(id(entry.node), 0) + 1
    unused: set[int] = set()
    for one in reversed(resolved):
        node = one.node
        if node.op != schema.TENSOR or users.get(id(node)) or node.name in heads:
            continue
        if id(node) in claims and node.attrs.get(ID) in used_before:
            unused.add(id(node))
            for entry in node.inputs:
                users[id(entry.node)] -= 1
    return unused


def _op_value(template: Template, item: Item) -> dict[str, Any]:
    """Give the JSON object of an op: the original one if nothing in it changed."""
    one, original = item.resolved, item.original
    value = original.place.value if original is not None else {}
    lists = {
        group: _tensor_list(tensors, value.get(group), old)
        for group, tensors, old in zip(
            GROUPS,
            (one.reads, one.writes, one.results),
            (original.reads, original.writes, original.results)
            if original is not None
            else ((), (), ()),
            strict=True,
        )
    }
    same = bool(value) and all(lists[group] is value[group] for group in GROUPS)
    members: dict[str, Any] = {
        "Type": value.get("Type", schema.TENSOR if one.node.is_variable else one.node.op),
        "Name": value.get("Name", one.node.name),
        "IsVirtual": value.get("IsVirtual", one.virtual),
        **lists,
    }
    if original is not None and template.names[original.place.key] != one.node.name:
        members["Name"] = one.node.name
    old_args = value.get("Args", {})
    if one.virtual and original is None:
        args: Mapping[str, Any] = {}
    else:
        args = arguments.tagged(one.node, old_args)
        if one.node.op.startswith("Reduce") and one.reads:
            args = arguments.from_front(args, old_args, len(one.reads[0].shape))
        if one.node.op == "Matmul" and template.document.variant in ("v1", "v1.5"):
            touched = not same or any(args.get(k) is not old_args.get(k) for k in args)
            if touched:
                args = derived_arguments(one, args, old_args)
    unchanged = args.keys() == old_args.keys() and all(args[k] is old_args[k] for k in args)
    members["Args"] = old_args if original is not None and unchanged else args
    if CONFIG in one.node.attrs and "Config" in value:
        members["Config"] = _config(one.node, value["Config"])
    if original is None:
        return members
    if all(members.get(key, item) is item for key, item in value.items()):
        return value
    return {key: members.get(key, item) for key, item in value.items()}


def _config(node: Node, old: Any) -> Any:
    text = node.attrs[CONFIG]
    if text == compact_json(old):
        return old
    try:
        return plain_json(text)
    except ValueError as error:
        raise GraphError(f"{blame(node)}: attribute {CONFIG!r}: {error}") from None


def _tensor_list(tensors: tuple[Tensor, ...], value: Any, old: tuple[Tensor, ...]) -> Any:
    """Give the JSON of some tensors: that of the file as far as they are the same."""
    if value is not None and [t[:-1] for t in tensors] == [t[:-1] for t in old]:
        return value
    known = {tensor.id: (tensor, mention) for tensor, mention in zip(old, value or (), strict=True)}
    printed = []
    for tensor in tensors:
        found = known.get(tensor.id)
        same = found is not None and found[0][:-1] == tensor[:-1]
        printed.append(found[1] if found is not None and same else dict(tensor.source))
    return printed
