"""Protocol buffers on the wire: find the weights in an ONNX file, and write them back, uncopied.

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
"""Field numbers of a model stay below this; random bytes do not."""


class Stripped(NamedTuple):
    """A serialized model whose larger weights were taken out.

    Attributes
    ----------
    message : bytes
        The model, without ``raw_data`` in the initializers of ``payloads``.
    payloads : dict of int to (int, int)
        By number of the initializer, offset and length of its raw data in the file.
    """

    message: bytes
    payloads: dict[int, tuple[int, int]]


class _Field(NamedTuple):
    number: int
    kind: int
    start: int
    body: int
    end: int


class _GroupError(Exception):
    """Groups, which ONNX does not use, are left to the parser of protobuf."""


def _varint(data: Buffer, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while position < end and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise FormatError("a number of protobuf does not end", offset=position)


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
            raise FormatError("a field of protobuf ends beyond its message", offset=start)
        yield _Field(tag >> 3, kind, start, body, position)


def is_model(data: Buffer) -> bool:
    """Whether bytes are laid out as an ONNX model: read without looking into the graph."""
    seen = set()
    try:
        for field in _fields(data, 0, len(data)):
            if not 0 < field.number < _KNOWN_FIELDS:
                return False
            if field.number in (_GRAPH, _OPSET_IMPORT) and field.kind != _BYTES:
                return False
            if field.number == _IR_VERSION and field.kind != _VARINT:
                return False
            seen.add(field.number)
    except (FormatError, _GroupError):
        return False
    return _GRAPH in seen and bool(seen & {_IR_VERSION, _OPSET_IMPORT})


def split(data: Buffer) -> Stripped:
    """Take the larger raw data of the main graph's initializers out of a serialized model.

    Raises
    ------
    FormatError
        The bytes are no protocol buffers message; with the offset.
    """
    payloads: dict[int, tuple[int, int]] = {}
    pieces: list[bytes] = []
    kept = number = 0
    try:
        for field in _fields(data, 0, len(data)):
            if field.number == _GRAPH and field.kind == _BYTES:
                # Messages that occur twice are merged, so the count goes on from graph to graph.
                graph, number = _split_graph(data, field, number, payloads)
                if graph is not None:
                    pieces += (data[kept : field.start], _head(_GRAPH, len(graph)), graph)
                    kept = field.end
    except _GroupError:
        return Stripped(bytes(data[:]), {})
    return Stripped(b"".join((*pieces, data[kept:])), payloads)


def _split_graph(
    data: Buffer, graph: _Field, number: int, payloads: dict[int, tuple[int, int]]
) -> tuple[bytes | None, int]:
    pieces: list[bytes] = []
    kept = graph.body
    for field in _fields(data, graph.body, graph.end):
        if field.number != _INITIALIZER or field.kind != _BYTES:
            continue
        if field.end - field.body >= _SMALLEST:
            raw = [f for f in _fields(data, field.body, field.end) if f.number == _RAW_DATA]
            if len(raw) == 1 and raw[0].kind == _BYTES and raw[0].end - raw[0].body >= _SMALLEST:
                payloads[number] = (raw[0].body, raw[0].end - raw[0].body)
                rest = data[field.body : raw[0].start] + data[raw[0].end : field.end]
                pieces += (data[kept : field.start], _head(_INITIALIZER, len(rest)), rest)
                kept = field.end
        number += 1
    if not pieces:
        return None, number
    return b"".join((*pieces, data[kept : graph.end])), number


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
    """Write a model, with the raw data of some initializers put in from arrays.

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
