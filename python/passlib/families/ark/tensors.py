"""Tensors of an ARK file: boxes inside the dense arrays of buffers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from passlib.arrays import dtypes
from passlib.dialects.json_text import compact_json
from passlib.errors import FormatError, UnsupportedError
from passlib.families.ark.document import kind

MAX_RANK = 4

ITEM_SIZES = {
    "FP32": 4,
    "FP16": 2,
    "BF16": 2,
    "INT32": 4,
    "UINT32": 4,
    "INT8": 1,
    "UINT8": 1,
    "BYTE": 1,
}
"""Bytes of an element, by name of the element type."""

_NUMPY = {
    "FP32": "float32",
    "FP16": "float16",
    "BF16": "bfloat16",
    "INT32": "int32",
    "UINT32": "uint32",
    "INT8": "int8",
    "UINT8": "uint8",
    "BYTE": "uint8",
}

_LARGEST = 1 << 62
"""Sizes and offsets beyond this are nonsense, and their sums would not fit 64 bits."""


class Box(NamedTuple):
    """The position of a tensor's elements in its buffer."""

    shape: tuple[int, ...]
    """Elements in each dimension."""
    strides: tuple[int, ...]
    """Extents of the dense row-major array that contains the box and starts at the buffer's first
    byte. Despite the name in the file they are not distances between elements."""
    offsets: tuple[int, ...]
    """Index of the first element in that array."""

    @property
    def extent(self) -> int:
        """Number of elements of the array that contains the box."""
        return math.prod(self.strides)

    @property
    def whole(self) -> bool:
        """Whether the box is the whole array."""
        return self.shape == self.strides

    def meets(self, other: Box) -> bool:
        """Whether two boxes of arrays of the same extents share an element."""
        boxes = zip(self.offsets, self.shape, other.offsets, other.shape, strict=True)
        return all(a < b + t and b < a + s for a, s, b, t in boxes)

    def steps(self) -> tuple[int, ...]:
        """Distance, in elements, between neighbours along each dimension."""
        steps = [1] * len(self.strides)
        for axis in range(len(self.strides) - 2, -1, -1):
            steps[axis] = steps[axis + 1] * self.strides[axis + 1]
        return tuple(steps)

    def span(self) -> tuple[int, int]:
        """Return the positions in the buffer of its first element, and one after its last."""
        steps = self.steps()
        first = sum(o * step for o, step in zip(self.offsets, steps, strict=True))
        last = sum((s - 1) * step for s, step in zip(self.shape, steps, strict=True))
        return first, first + last + 1


class Tensor(NamedTuple):
    """A tensor as a file describes it."""

    id: int
    dtype: str
    """Element type by ARK's name."""
    box: Box
    padded: tuple[int, ...]
    """``PaddedShape``, or ``Pads`` in the oldest files."""
    buffer: int
    """Id of the buffer."""
    rank: int
    """Rank that owns the buffer; -1 is the rank that the file is for."""
    source: Mapping[str, Any]
    """Its JSON object."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """Everything but the JSON object: equal for two mentions with the same description."""
        return self[:-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements in each dimension."""
        return self.box.shape

    @property
    def item_size(self) -> int:
        """Bytes of an element; 1 for unknown types."""
        return ITEM_SIZES.get(self.dtype, 1)

    def tags(self, key: str) -> list[tuple[int, int]]:
        """Remote ranks with tags, from ``SendTags`` or ``RecvTags``; others are skipped."""
        return [
            (pair[0], pair[1])
            for pair in self.source["Buffer"].get(key, ())
            if isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is type(pair[1]) is int
        ]


def read_tensor(value: Any, place: str) -> Tensor:
    """Read those members of a tensor's JSON object, at ``place``, that a graph needs.

    Raises `FormatError` if a key is missing, its value is of the wrong type, or values contradict
    each other.
    """
    if not isinstance(value, dict):
        raise FormatError(f"{place}: a tensor is an object, not {kind(value)}")
    try:
        buffer = value["Buffer"]
        shape, strides, offsets = value["Shape"], value["Strides"], value["Offsets"]
        padded = value["PaddedShape"] if "PaddedShape" in value else value["Pads"]
        number, dtype = value["Id"], value["DataType"]
        owner = buffer["Id"], buffer["Rank"]
    except KeyError as error:
        missing = "PaddedShape" if error.args[0] == "Pads" else error.args[0]
        raise FormatError(f"{place}: the key {missing!r} is missing") from None
    except TypeError:
        raise FormatError(f"{place}.Buffer: a buffer is an object, not {kind(buffer)}") from None
    for key, items in (("Shape", shape), ("Strides", strides), ("Offsets", offsets)):
        _require_sizes(items, f"{place}.{key}")
    _require_sizes(padded, f"{place}.{'PaddedShape' if 'PaddedShape' in value else 'Pads'}")
    if not len(shape) == len(strides) == len(offsets) == len(padded):
        raise FormatError(
            f"{place}: Shape {compact_json(shape)}, Strides {compact_json(strides)}, Offsets "
            f"{compact_json(offsets)} and padding {compact_json(padded)} differ in length"
        )
    for key, item in (("Id", number), ("Buffer.Id", owner[0]), ("Buffer.Rank", owner[1])):
        if type(item) is not int:
            raise FormatError(f"{place}.{key}: expected an integer, not {kind(item)}")
    if not isinstance(dtype, str):
        raise FormatError(f"{place}.DataType: expected a name, not {kind(dtype)}")
    box = Box(tuple(shape), tuple(strides), tuple(offsets))
    if any(s < 1 or o < 0 or o + s > t for s, t, o in zip(*box, strict=True)):
        raise FormatError(
            f"{place}: Shape {compact_json(shape)} at Offsets {compact_json(offsets)} does not lie "
            f"within Strides {compact_json(strides)}"
        )
    for key in ("SendTags", "RecvTags"):
        if not isinstance(buffer.get(key, []), list):
            raise FormatError(f"{place}.Buffer.{key}: expected an array")
    return Tensor(number, dtype, box, tuple(padded), owner[0], owner[1], value)


def overlap(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors share bytes of one buffer.

    Exact for boxes in arrays of the same extents; otherwise whether their spans meet.
    """
    if left.buffer != right.buffer:
        return False
    if left.box.strides == right.box.strides and left.item_size == right.item_size:
        return left.box.meets(right.box)
    first, last = (n * left.item_size for n in left.box.span())
    other, end = (n * right.item_size for n in right.box.span())
    return first < end and other < last


def same_memory(left: Tensor, right: Tensor) -> bool:
    """Whether two tensors differ in their boxes at most."""
    return (left.dtype, left.buffer, left.rank) == (right.dtype, right.buffer, right.rank)


def numpy_type(dtype: str, who: str) -> np.dtype:
    """Return the NumPy type for an ARK element type.

    Raises `UnsupportedError` if there is none; the message starts with ``who``.
    """
    if dtype not in _NUMPY:
        raise UnsupportedError(f"{who}: unknown element type {dtype!r}")
    return dtypes.as_dtype(_NUMPY[dtype])


def _require_sizes(items: Any, place: str) -> Sequence[int]:
    if not isinstance(items, list):
        raise FormatError(f"{place}: expected an array, not {kind(items)}")
    for item in items:
        if type(item) is not int or not -_LARGEST < item < _LARGEST:
            raise FormatError(f"{place}: {kind(item)} is not a valid size")
    if not 0 < len(items) <= MAX_RANK:
        raise FormatError(f"{place}: a tensor has 1 to {MAX_RANK} dimensions, not {len(items)}")
    return items
