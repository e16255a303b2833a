"""The JSON objects of ops: the original ones if nothing in them changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passlib.errors import GraphError
from passlib.families.ark import arguments, schema
from passlib.families.ark.document import GROUPS
from passlib.families.ark.json_values import compact_json, plain_json
from passlib.families.ark.operators import CONFIG
from passlib.families.ark.reading.template import Template
from passlib.families.ark.tensors import Tensor
from passlib.families.ark.writing.items import Item
from passlib.families.ark.writing.matmul_args import derived_arguments
from passlib.graph.attributes import blame
from passlib.graph.node import Node


def op_value(template: Template, item: Item) -> dict[str, Any]:
    """Return the JSON object of an op: the original one if nothing in it changed."""
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
    if original is not None and template.parts.names[original.place.key] != one.node.name:
        members["Name"] = one.node.name
    old_args = value.get("Args", {})
    if one.virtual and original is None:
        args: Mapping[str, Any] = {}
    else:
        args = arguments.tagged(one.node, old_args)
        if one.node.op.startswith("Reduce") and one.reads:
            args = arguments.from_front(args, old_args, len(one.reads[0].shape))
        if one.node.op == "Matmul" and template.document.variant.derived_arguments:
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
    """Return the JSON of some tensors; unchanged ones keep that of the file."""
    if value is not None and [t[:-1] for t in tensors] == [t[:-1] for t in old]:
        return value
    known = {tensor.id: (tensor, mention) for tensor, mention in zip(old, value or (), strict=True)}
    printed = []
    for tensor in tensors:
        found = known.get(tensor.id)
        same = found is not None and found[0][:-1] == tensor[:-1]
        printed.append(found[1] if found is not None and same else dict(tensor.source))
    return printed
