"""Protocol buffers on the wire: weights are written into an ONNX file uncopied.

Encoding: https://protobuf.dev/programming-guides/encoding; field numbers: onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np

_BYTES = 2
"""The wire type of messages, strings and bytes."""

_GRAPH = 7
_INITIALIZER, _RAW_DATA = 5, 9


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
