"""Writing of a graph in the form of the ARK file that it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import passlib._core as _core
from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.describing import Describer
from passlib.families.ark.document import ordered
from passlib.families.ark.operators import ID, FileOp
from passlib.families.ark.reading import Template
from passlib.families.ark.resolve import Resolved, Resolver
from passlib.families.ark.writing.units import arrange, print_document
from passlib.families.ark.writing.values import Item, op_value, require_fit, require_order
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node


def write(template: Template, graph: _core.Graph, *, allow_removed: bool = False) -> bytes:
    """Write a graph in the form of the file that it was read from.

    Raises `GraphError` if a node with side effects was removed, nodes do not fit together, or two
    accesses to the same memory have lost their order; `UnsupportedError` if a new node cannot be
    described in this format.

    Parameters
    ----------
    graph : _core.Graph
        Checked.
    allow_removed : bool
        Whether nodes with side effects may be missing.
    """
    if template.graph.equals(graph):
        return template.text
    described = graph.nodes()
    nodes = _nodes(described)
    claims = _claims(template, nodes)
    if not allow_removed:
        _require_effects(template, claims)
    resolver = _resolver(template)
    resolved = [resolver.resolve(node) for node in nodes]
    hidden = {str(node.attrs.get(ID)) for node in template.nodes} - template.ops.keys()
    heads = {described[position].name for position, _, _ in graph.heads()}
    items = _items(template, resolved, claims, hidden, heads)
    if template.document.plan:
        for item in items:
            if item.original is None:
                raise UnsupportedError(
                    f"{blame(item.resolved.node)}: a plan places every op on processors, so new "
                    "ones cannot be added; run the pass on the model file"
                )
    values = [op_value(template, item) for item in items]
    changed = [
        (item.resolved, value["Args"])
        for item, value in zip(items, values, strict=True)
        if item.original is None or value is not item.original.place.value
    ]
    document = template.document
    padding = document.variant.padded_products and not document.plan
    require_fit(changed, padding=padding, rank=document.rank)
    if not document.plan:  # the order of a plan is that of its tasks on processors
        require_order([item.resolved for item in items], lambda: _before(template))
    return print_document(document, arrange(template, items, values))


def _nodes(described: Sequence[_core.NodeTuple]) -> list[Node]:
    """Build the nodes, each after its inputs."""
    needs = [[*(i for i, _, _ in node.inputs), *node.control_deps] for node in described]
    order = ordered(needs, lambda i: f"node {described[i].name!r}")
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
    """Find the op of the file that each node represents; the first of several nodes gets it."""
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
        f"{template.parts.names[key]!r} ({op.type})"
        for key, op in template.ops.items()
        if op.effects and key not in present
    ]
    if gone:
        raise GraphError(
            f"the pass removed nodes with side effects: {', '.join(gone)}; keep nodes with the "
            "attribute '__effects__', or pass allow_removed=True"
        )


def _resolver(template: Template) -> Resolver:
    tensors = [t for op in template.ops.values() for t in (*op.reads, *op.writes, *op.results)]
    keys: Sequence[str] = list(tensors[0].source) if tensors else ()
    return Resolver(
        Describer(
            padding=template.document.variant.padding,
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
    """Select the ops of the new file, and add declarations for the memory of new nodes."""
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
    template: Template, resolved: list[Resolved], claims: Mapping[int, FileOp], heads: set[str]
) -> set[int]:
    """Find declarations and views whose last user was removed."""
    had_users = {position for node in template.nodes for position, _, _ in node.inputs}
    used_before = {template.nodes[position].attrs.get(ID) for position in had_users}
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
