"""Memory of the ranks of a job as values, and the messages between them.

A write makes a new value of the whole buffer; a read takes a box out of the latest one. These are
nodes ``Read``, ``Write``, ``Zeros`` and ``Recast``, which `operators` lowers. Memory is zero before
the first write, as ARK allocates it.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark.resolve import Resolved
from passlib.families.ark.tensors import ITEM_SIZES, Box, Tensor
from passlib.graph.attributes import blame
from passlib.graph.node import Entry, Node

BOX = "__box__"
"""Shape, strides and offsets of the box that a node reads, writes or computes."""
SIZE = "__size__"
"""Number of elements of the buffer that contains the box."""
TYPE = "__type__"
"""ARK's name of the element type."""

_ALIKE = ({"INT8", "UINT8", "BYTE"}, {"INT32", "UINT32"})
"""Types between which ONNX's Cast keeps the bits."""


@dataclass
class _Content:
    dtype: str
    value: Entry
    """The buffer's elements, or its first ones, in any shape."""
    boxes: dict[Box, Entry]
    """The values of boxes that need no read."""


class Memory:
    """The buffers of one rank during conversion."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._bytes: dict[int, int] = {}
        for tensor in tensors:
            size = tensor.box.extent * tensor.item_size
            self._bytes[tensor.buffer] = max(size, self._bytes.get(tensor.buffer, 0))
        self._contents: dict[int, _Content] = {}
        self.nodes: list[Node] = []

    def read(self, tensor: Tensor, user: Node) -> Entry:
        """Return the current value of a tensor.

        Raises `UnsupportedError` if the buffer holds elements of another type, whose bits would
        have to be reinterpreted.
        """
        content = self._content(tensor, user)
        if content is None:
            return self._add("Zeros", user, tensor, [])
        if tensor.box not in content.boxes:
            content.boxes[tensor.box] = self._add("Read", user, tensor, [content.value])
        return content.boxes[tensor.box]

    def write(self, tensor: Tensor, value: Entry, user: Node) -> None:
        """Set the value of a tensor; the shapes must be equal.

        Raises the errors of `read` if a part of the buffer keeps its old value.
        """
        size = self._size(tensor)
        if tensor.box.whole and tensor.box.extent == size:
            self._contents[tensor.buffer] = _Content(tensor.dtype, value, {tensor.box: value})
            return
        content = self._content(tensor, user)
        old = [] if content is None else [content.value]
        whole = self._add("Write", user, tensor, [value, *old])
        boxes = {} if content is None else content.boxes
        kept = {
            box: known
            for box, known in boxes.items()
            if box.strides == tensor.box.strides and not box.meets(tensor.box)
        }
        self._contents[tensor.buffer] = _Content(tensor.dtype, whole, {**kept, tensor.box: value})

    def _content(self, tensor: Tensor, user: Node) -> _Content | None:
        content = self._contents.get(tensor.buffer)
        if content is None or content.dtype == tensor.dtype:
            return content
        if not any({content.dtype, tensor.dtype} <= alike for alike in _ALIKE):
            raise UnsupportedError(
                f"{blame(user)}: buffer {tensor.buffer} holds {content.dtype} and is used as "
                f"{tensor.dtype}, which ONNX cannot express"
            )
        value = self._add("Recast", user, tensor, [content.value])
        content = _Content(tensor.dtype, value, {})
        self._contents[tensor.buffer] = content
        return content

    def _size(self, tensor: Tensor) -> int:
        if tensor.dtype not in ITEM_SIZES:
            return tensor.box.extent
        return max(self._bytes[tensor.buffer] // tensor.item_size, tensor.box.extent)

    def _add(self, op: str, user: Node, tensor: Tensor, inputs: list[Entry]) -> Entry:
        attrs = {**geometry(tensor), SIZE: str(self._size(tensor))}
        node = Node(op, user.name, attrs, inputs, 1)
        self.nodes.append(node)
        return Entry(node)


def geometry(tensor: Tensor) -> dict[str, str]:
    """Return the box and the element type of a tensor as attributes."""
    return {BOX: json.dumps(tensor.box), TYPE: tensor.dtype}


_Route = tuple[int, int, int]
"""Receiver, sender, tag."""


@dataclass
class Program:
    """The graph of one rank during conversion, with its outputs and a prefix for names of nodes."""

    rank: int
    resolved: list[Resolved]
    memory: Memory
    heads: set[tuple[Node, int]] = field(default_factory=set)
    prefix: str = ""


class Mail:
    """Carries values between programs.

    Raises `GraphError` if two programs have the same rank.
    """

    def __init__(self, programs: Sequence[Program]) -> None:
        self._programs = {program.rank: program for program in programs}
        if len(self._programs) < len(programs):
            raise GraphError("two of the models have the same rank")
        self._boxes: defaultdict[_Route, list[tuple[Entry, Tensor]]] = defaultdict(list)
        self._landing: dict[_Route, Tensor] = {}
        self._waiting: dict[int, Resolved] = {}
        self._released: set[int] = set()
        for program in programs:
            for one in program.resolved:
                for tensor in (*one.reads, *one.writes, *one.results):
                    if tensor.rank not in (-1, program.rank):
                        continue
                    for sender, tag in tensor.tags("RecvTags"):
                        self._landing.setdefault((program.rank, sender, tag), tensor)

    def run(self, step: Callable[[Program, Resolved], None]) -> None:
        """Run all programs to their end, each op as soon as its inputs and messages are available.

        Raises `GraphError` if ops wait for messages that no rank sends.
        """
        pending = {rank: list(p.resolved) for rank, p in self._programs.items()}
        done: set[int] = set()
        while any(pending.values()):
            moved = False
            for rank, program in self._programs.items():
                left = []
                for one in pending[rank]:
                    node = one.node
                    needs = (*(entry.node for entry in node.inputs), *node.control_deps)
                    if all(id(need) in done for need in needs) and self._ready(program, one):
                        step(program, one)
                        done.add(id(node))
                        moved = True
                    else:
                        left.append(one)
                pending[rank] = left
            if not moved and not self._release():
                stuck = [f"{blame(ops[0].node)} of rank {r}" for r, ops in pending.items() if ops]
                raise GraphError(f"these wait for messages that no rank sends: {', '.join(stuck)}")

    def perform(self, program: Program, one: Resolved) -> list[Entry]:
        """Run one op that communicates and is ready; return its results."""
        op, memory = one.node.op, program.memory
        if op in ("RecvReduceSend", "RecvReduceSendPacket"):
            return self._reduce(program, one)
        if op in ("Send", "SendPacket"):
            value = memory.read(one.reads[0], one.node)
            self._deliver(program, one, one.writes[0], value, one.reads[0])
        elif op in ("Recv", "RecvPacket"):
            found = self._find(program, one, peek=False)
            assert found is not None
            value = self._shaped(program, one, *found)
            memory.write(one.writes[0], value, one.node)
        else:
            assert op == "DeviceSync", op
            value = memory.read(one.writes[0], one.node)
        return [value]

    def _ready(self, program: Program, one: Resolved) -> bool:
        op = one.node.op
        if op in ("Recv", "RecvPacket"):
            return self._find(program, one, peek=True) is not None
        if op in ("RecvReduceSend", "RecvReduceSendPacket"):
            return len(self._peers(program, one)) >= _count(one)
        if op == "DeviceSync":
            if id(one.node) in self._released:
                return True
            self._waiting.setdefault(program.rank, one)
            return False
        return True

    def _release(self) -> bool:
        """Release a barrier that all ranks have reached; return whether there is one."""
        if not self._waiting or len(self._waiting) < len(self._programs):
            return False
        self._released |= {id(one.node) for one in self._waiting.values()}
        self._waiting = {}
        return True

    def _reduce(self, program: Program, one: Resolved) -> list[Entry]:
        total = program.memory.read(one.reads[0], one.node)
        for route in self._peers(program, one)[: _count(one)]:
            part, tensor = self._boxes[route].pop(0)
            part = self._shaped(program, one, part, tensor)
            total = self._node(program, "Add", one, [total, part])
        program.memory.write(one.writes[0], total, one.node)
        for target in one.writes[1:]:
            self._deliver(program, one, target, total, one.writes[0])
        return [total]

    def _deliver(
        self, program: Program, one: Resolved, target: Tensor, value: Entry, described: Tensor
    ) -> None:
        tags = [tag for _, tag in target.tags("RecvTags")]
        if len(tags) > 1:  # several ops send to it, and the source has the tag of this one
            sent = {tag for rank, tag in described.tags("SendTags") if rank == target.rank}
            tags = [tag for tag in tags if tag in sent] or tags
        if len(tags) != 1 or target.rank not in self._programs:
            raise UnsupportedError(
                f"{blame(one.node)} of rank {program.rank}: sends to rank {target.rank} with "
                f"{len(tags)} tags; expected one tag and one of the given ranks"
            )
        route = target.rank, program.rank, tags[0]
        self._boxes[route].append((value, described))
        landing = self._landing.get(route)
        if landing is not None and landing.dtype == described.dtype == target.dtype:
            moved = landing._replace(box=target.box)
            self._programs[target.rank].memory.write(moved, value, one.node)

    def _find(self, program: Program, one: Resolved, *, peek: bool) -> tuple[Entry, Tensor] | None:
        sender = one.reads[0].rank
        if one.node.op == "Recv":
            tags = [tag for _, tag in one.reads[0].tags("SendTags")]
            landing = {tag for rank, tag in one.writes[0].tags("RecvTags") if rank == sender}
            tags = [tag for tag in tags if tag in landing] or tags
        else:
            tags = [tag for rank, tag in one.reads[1].tags("RecvTags") if rank == sender]
        for tag in tags:
            box = self._boxes.get((program.rank, sender, tag))
            if box:
                return box[0] if peek else box.pop(0)
        return None

    def _peers(self, program: Program, one: Resolved) -> list[_Route]:
        routes = [(program.rank, sender, tag) for sender, tag in one.reads[1].tags("RecvTags")]
        return [route for route in routes if self._boxes.get(route)]

    def _shaped(self, program: Program, one: Resolved, value: Entry, described: Tensor) -> Entry:
        wanted = one.writes[0]
        same = math.prod(described.shape) == math.prod(wanted.shape)
        if described.dtype != wanted.dtype or not same:
            raise GraphError(
                f"{blame(one.node)} of rank {program.rank} expects {wanted.dtype} "
                f"{list(wanted.shape)}, but receives {described.dtype} {list(described.shape)}"
            )
        if described.shape == wanted.shape:
            return value
        return self._node(program, "Arrange", one, [value])

    def _node(self, program: Program, op: str, one: Resolved, inputs: list[Entry]) -> Entry:
        node = Node(op, program.prefix + one.node.name, geometry(one.writes[0]), inputs, 1)
        program.memory.nodes.append(node)
        return Entry(node)


def _count(one: Resolved) -> int:
    """Return the number of messages that a reduction receives."""
    try:
        return int(one.node.attrs["NPeers"])
    except (KeyError, ValueError):
        raise UnsupportedError(f"{blame(one.node)}: attribute 'NPeers' is not a number") from None
