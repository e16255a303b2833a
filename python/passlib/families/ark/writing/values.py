"""The JSON objects of ops: the original ones if nothing in them changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from passlib.dialects.json_text import compact_json
from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import arguments, schema
from passlib.families.ark.arguments import values
from passlib.families.ark.document import GROUPS, plain_json
from passlib.families.ark.operators import CONFIG, ID, FileOp
from passlib.families.ark.reading import Template
from passlib.families.ark.resolve import Resolved
from passlib.families.ark.tensors import Tensor
from passlib.families.ark.validation.args import (
    communication_misfits,
    derive,
    misfits,
    padding_misfits,
)
from passlib.families.ark.validation.hazards import Access, find_hazards
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering.types import Misfit

T = TypeVar("T")


class Item(NamedTuple):
    """An op of the new file, and the one in the file that was read; None for a new one."""

    resolved: Resolved
    original: FileOp | None

    @property
    def position(self) -> int:
        """Its position among the ops of its node or task."""
        return 0 if self.original is None else self.original.place.position


def written_sources(node: Node, written: Mapping[int, T]) -> Iterator[T]:
    """Yield what ``written`` has for each node that a node needs, directly or by implied nodes.

    ``written`` has values by the ``id`` of nodes of the new file.
    """
    pending = [*(entry.node for entry in node.inputs), *node.control_deps]
    seen: set[int] = set()
    while pending:
        source = pending.pop()
        if id(source) in seen:
            continue
        seen.add(id(source))
        if id(source) in written:
            yield written[id(source)]
        else:
            pending += [entry.node for entry in source.inputs]


def require_fit(
    changed: Sequence[tuple[Resolved, Mapping[str, Any]]], *, padding: bool, rank: int
) -> None:
    """Check the tensors of ops that a pass changed.

    Raises `GraphError` if one of them breaks a rule; the message names the node. ``changed`` has
    the ops with their ``Args``, for a file of a rank. With ``padding``, the paddings of matrix
    products must fit too.
    """
    for one, tagged in changed:
        if one.virtual:
            continue
        args = arguments.values(tagged)
        for problem in misfits(one.node.op, args, one.reads, one.writes):
            raise GraphError(f"{blame(one.node)}: {problem}")
        if padding and one.node.op == "Matmul":
            for problem in padding_misfits(args, one.reads, one.writes):
                raise GraphError(f"{blame(one.node)}: PaddedShape: {problem}")
        operator = schema.find(one.node.op)
        if operator is not None and operator.effects:
            for key, problem in communication_misfits(
                one.node.op, args, one.reads, one.writes, rank
            ):
                raise GraphError(f"{blame(one.node)}: {key}: {problem}")


def require_order(ops: Sequence[Resolved], before: Callable[[], Sequence[Resolved]]) -> None:
    """Check that all accesses to the same memory that were ordered before a pass still are.

    Raises `GraphError` if two accesses have lost their order; the message names the nodes;
    `UnsupportedError` if there are too many accesses to compare.
    ``before`` returns the ops before the pass; accesses that were unordered there may stay so.
    """
    found = _hazards(ops)
    if not found:
        return
    known = {_identity(hazard) for hazard in _hazards(before())}
    for hazard in found:
        if _identity(hazard) in known:
            continue
        first, second, buffer, stale = hazard
        if stale:
            raise GraphError(
                f"{blame(second)} reads memory of buffer {buffer} that {blame(first)} has "
                "already overwritten"
            )
        raise GraphError(
            f"{blame(first)} and {blame(second)} use the same memory of buffer {buffer} in no "
            "defined order"
        )


_Found = tuple[Node, Node, int, bool]


def _identity(hazard: _Found) -> tuple[frozenset[str], int, bool]:
    first, second, buffer, stale = hazard
    return frozenset((first.attrs.get(ID, ""), second.attrs.get(ID, ""))), buffer, stale


def _hazards(ops: Sequence[Resolved]) -> list[_Found]:
    position = {id(one.node): i for i, one in enumerate(ops)}
    accesses = [
        Access(
            () if one.virtual else one.reads,
            one.writes,
            one.results,
            list(written_sources(one.node, position)),
        )
        for one in ops
    ]
    hazards, unchecked = find_hazards(accesses)
    if unchecked is not None:
        raise UnsupportedError(
            f"{blame(ops[unchecked].node)}: up to here, memory is used in too many ways to check "
            "that the pass kept the order of accesses"
        )
    return [
        (ops[hazard.first].node, ops[hazard.second].node, hazard.buffer, hazard.stale)
        for hazard in hazards
    ]


def derived_arguments(
    one: Resolved, args: Mapping[str, Any], old: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of a Matmul with the derived ones computed from its tensors.

    Raises `GraphError` if its tensors do not fit together.
    """
    try:
        derived = derive(one.reads, one.writes[0], values(args))
    except Misfit as error:
        raise GraphError(f"{blame(one.node)}: {error}") from None
    result = dict(args)
    for name, value in derived.items():
        same = name in old and values({name: old[name]})[name] == value
        result[name] = old[name] if same else {"DIMS": value}
    order = [*args, *sorted(result.keys() - args.keys())]
    if list(args) == sorted(args):
        order.sort()  # as in ARK's serializer
    return {name: result[name] for name in order}


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
