"""Weights moved between an ONNX model and its data file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from passlib.dialects.onnx.external import EXTERNAL, Folder, append, set_location
from passlib.dialects.onnx.messages import external_tensors, graphs_within
from passlib.dialects.onnx.tensors import DATA_FIELDS, to_array
from passlib.dialects.onnx.writing.assembly import Assembled
from passlib.dialects.onnx.writing.options.placement import Placement


def place(
    assembled: Assembled,
    placement: Placement,
    folder: Folder,
    location: str,
    create: Callable[[], BinaryIO],
) -> None:
    """Write the weights that a placement moves to a data file, and put all others in the model.

    Initializers of nested graphs are weights, too. Values of attributes move only if they are in
    a data file already. Strings, and elements that are neither raw nor of a type that NumPy has,
    stay in the model.

    Parameters
    ----------
    assembled : Assembled
        Its messages get the new locations; its arrays that moved are removed from it, and none
        is external any more.
    placement : Placement
    folder : Folder
        Of the model as it was read, with the data files that it has so far.
    location : str
        The data file, relative to the model.
    create : callable
        Opens it; called only if a weight moves.
    """
    arrays = assembled.arrays
    assembled.external = {}
    written: dict[tuple[int, int], tuple[int, int]] = {}
    with ExitStack() as stack:
        file: BinaryIO | None = None
        for number, tensor in _weights(assembled.model):
            data = arrays.get(number)
            if data is None:
                data = _elements(tensor, folder)
            if data is None:
                continue
            if not placement.moves(data.nbytes):
                _put_inside(tensor, None if number in arrays else data)
                continue
            if file is None:
                file = stack.enter_context(create())
            for field in DATA_FIELDS:
                tensor.ClearField(field)
            # Weights that shared their data still do. Other addresses are soon used again.
            key = (data.ctypes.data, data.nbytes)
            if number in arrays and key in written:
                set_location(tensor, location, *written[key])
            else:
                position = append(file, tensor, data, location)
                if number in arrays:
                    written[key] = position
            arrays.pop(number, None)


def _weights(model: Any) -> Iterator[tuple[int, Any]]:
    """Iterate over initializers, those of the main graph first, and other external tensors."""
    # Held in a list, because ids of wrappers are unique only while the wrappers live.
    found = [tensor for graph in graphs_within(model.graph) for tensor in graph.initializer]
    known = set(map(id, found))
    found += [tensor for tensor in external_tensors(model) if id(tensor) not in known]
    yield from enumerate(found)


def _elements(tensor: Any, folder: Folder) -> np.ndarray[Any, Any] | None:
    """Return the elements of a tensor, as bytes where NumPy lacks the type; None for strings."""
    if tensor.HasField("segment"):
        return None
    what = repr(tensor.name)
    if tensor.data_location == EXTERNAL:
        return np.frombuffer(folder.content(tensor, what), np.uint8)
    if tensor.HasField("raw_data"):
        return np.frombuffer(tensor.raw_data, np.uint8)
    return to_array(tensor, what)


def _put_inside(tensor: Any, data: np.ndarray[Any, Any] | None) -> None:
    """Make a tensor one of the model; without data its elements are written with the file."""
    if tensor.data_location != EXTERNAL:
        return
    tensor.ClearField("external_data")
    tensor.ClearField("data_location")
    if data is not None:
        tensor.raw_data = data.tobytes()
