"""Protocol buffers on the wire: weights are found in an ONNX file and written back uncopied.

Encoding: https://protobuf.dev/programming-guides/encoding; field numbers: onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from passlib.errors import FormatError

__all__ = ["Stripped", "is_model", "split", "write"]

Buffer = bytes | mmap.mmap

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_IR_VERSION, _GRAPH, _OPSET_IMPORT = 1, 7, 8
_INITIALIZER, _RAW_DATA = 5, 9

_SMALLEST = 4096
"""Raw data of fewer bytes stays in its message."""

_KNOWN_FIELDS = 1 << 10
"""Field numbers of a model stay below this, unlike those in random bytes."""


class Stripped(NamedTuple):
    """A serialized model without its larger weights.

    Attributes
    ----------
    message : bytes
        The model, with ``raw_data`` removed from the initializers of ``payloads``.
    payloads : dict of int to (int, int)
        Offset and length of the raw data in the file, by number of the initializer.
    """

    message: bytes
    payloads: dict[int, tuple[int, int]]


_Field = tuple[int, int, int, int, int]
"""Number and wire type; positions of the field, of its value, and of its end.

A plain tuple, because a file has hundreds of thousands of them.
"""


class _GroupError(Exception):
    """The message has groups, which ONNX does not use: they are left to protobuf's parser."""


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise FormatError(
        "this protobuf number has no end; the file is truncated or damaged", offset=position
    )


def _fields(data: Buffer, position: int, end: int) -> Iterator[_Field]:
    while position < end:
        start = position
        tag = data[position]
        position += 1
        if tag >= 0x80:
            tag, position = _varint(data, start, end)
        kind = tag & 7
        body = position
        if kind == _BYTES:
            length = data[position] if position < end else 0x80
            body += 1
            if length >= 0x80:
                length, body = _varint(data, position, end)
            position = body + length
        elif kind == _VARINT:
            _, position = _varint(data, position, end)
        elif kind in (_FIXED64, _FIXED32):
            position += 8 if kind == _FIXED64 else 4
        elif kind in (3, 4):
            raise _GroupError
        else:
            raise FormatError(f"protobuf has no wire type {kind}", offset=start)
        if position > end:
            raise FormatError(
                "a protobuf field ends beyond its message; the file is truncated or damaged",
                offset=start,
            )
        yield tag >> 3, kind, start, body, position


def is_model(data: Buffer) -> bool:
    """Whether the outermost fields of some bytes are those of an ONNX model."""
    seen = set()
    try:
        for number, kind, _, _, _ in _fields(data, 0, len(data)):
            if not 0 < number < _KNOWN_FIELDS:
                return False
            if number in (_GRAPH, _OPSET_IMPORT) and kind != _BYTES:
                return False
            if number == _IR_VERSION and kind != _VARINT:
                return False
            seen.add(number)
    except (FormatError, _GroupError):
        return False
    return _GRAPH in seen and bool(seen & {_IR_VERSION, _OPSET_IMPORT})


def split(data: Buffer) -> Stripped:
    """Take the larger raw data of the main graph's initializers out of a serialized model.

    Raises
    ------
    FormatError
        The bytes are not a protocol buffers message; the error has the offset.
    """
    payloads: dict[int, tuple[int, int]] = {}
    pieces: list[bytes] = []
    kept = count = 0
    try:
        for number, kind, start, body, end in _fields(data, 0, len(data)):
            if number == _GRAPH and kind == _BYTES:
                # Repeated messages are merged, so the count continues from graph to graph.
                graph, count = _split_graph(data, body, end, count, payloads)
                if graph is not None:
                    pieces += (data[kept:start], _head(_GRAPH, len(graph)), graph)
                    kept = end
    except _GroupError:
        return Stripped(bytes(data[:]), {})
    return Stripped(b"".join((*pieces, data[kept:])), payloads)


def _split_graph(
    data: Buffer, first: int, last: int, count: int, payloads: dict[int, tuple[int, int]]
) -> tuple[bytes | None, int]:
    pieces: list[bytes] = []
    kept = first
    for number, kind, start, body, end in _fields(data, first, last):
        if number != _INITIALIZER or kind != _BYTES:
            continue
        if end - body >= _SMALLEST:
            raw = [field for field in _fields(data, body, end) if field[0] == _RAW_DATA]
            if len(raw) == 1 and raw[0][1] == _BYTES and raw[0][4] - raw[0][3] >= _SMALLEST:
                _, _, raw_start, raw_body, raw_end = raw[0]
                payloads[count] = (raw_body, raw_end - raw_body)
                rest = data[body:raw_start] + data[raw_end:end]
                pieces += (data[kept:start], _head(_INITIALIZER, len(rest)), rest)
                kept = end
        count += 1
    if not pieces:
        return None, count
    return b"".join((*pieces, data[kept:last])), count


def _head(number: int, length: int) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(length)


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def write(file: BinaryIO, model: Any, payloads: Mapping[int, np.ndarray[Any, Any]]) -> None:
    """Write a model, with the raw data of some initializers taken from arrays.

    Parameters
    ----------
    file : binary file
    model : onnx.ModelProto
        Loses its graph.
    payloads : mapping of int to numpy.ndarray
        Contiguous, by number of the initializer in the main graph.
    """
    if not payloads:
        file.write(model.SerializeToString())
        return
    heads = []
    for number, tensor in enumerate(model.graph.initializer):
        message = tensor.SerializeToString()
        array = payloads.get(number)
        if array is not None:
            message += _head(_RAW_DATA, array.nbytes)
        size = len(message) + (0 if array is None else array.nbytes)
        heads.append(_head(_INITIALIZER, size) + message)
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    data = sum(array.nbytes for array in payloads.values())
    file.write(model.SerializeToString())
    file.write(_head(_GRAPH, len(graph) + sum(map(len, heads)) + data))
    file.write(graph)
    for number, head in enumerate(heads):
        file.write(head)
        if number in payloads:
            file.write(payloads[number].reshape(-1).view(np.uint8).data)
