"""Buffers as values: the content of memory at each step, as nodes of a graph without memory.

A write makes a new value of the whole buffer; a read takes a box out of the latest one. These are
nodes ``Read``, ``Write``, ``Zeros`` and ``Recast``, which `boxes` and `conversion` lower. Memory is
zero before the first write, as ARK allocates it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from passlib.errors import UnsupportedError
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
        kept = {box: known for box, known in boxes.items() if _apart(box, tensor.box)}
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


def _apart(left: Box, right: Box) -> bool:
    """Whether two boxes certainly share no element."""
    if left.strides != right.strides:
        return False
    boxes = zip(left.offsets, left.shape, right.offsets, right.shape, strict=True)
    return any(a + s <= b or b + t <= a for a, s, b, t in boxes)
