"""MXNet's NumPy mode: whether 0 is a size and () the shape of a scalar, or both are unknown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

from passlib.arrays.shape_mode import ShapeMode, is_np_shape
from passlib.graph.node import Node
from passlib.lowering import Graph, Shape
from passlib.mxnet.reading import ATTRIBUTES, saved, states_numpy_mode

_KEY: Final = "is_np_shape"


@runtime_checkable
class _Attributed(Protocol):
    """A graph with attributes of its own."""

    @property
    def attributes(self) -> Mapping[str, str]: ...


def is_numpy(symbol: Graph) -> bool:
    """Whether a symbol is in NumPy mode: `passlib.util.np_shape` is set, or its file says so.

    MXNet ignores the file.
    """
    return is_np_shape() or (
        isinstance(symbol, _Attributed) and states_numpy_mode(symbol.attributes)
    )


def mode_of(symbol: Graph) -> ShapeMode:
    """Return the context in which a symbol, with the graphs in it, is inferred and lowered."""
    return ShapeMode(is_numpy(symbol))


def partial_shape(sizes: Sequence[int | None]) -> Shape:
    """Return a shape with None for unknown sizes, which are -1, outside NumPy mode 0 as well."""
    least = 0 if is_np_shape() else 1
    return tuple(None if size is None or size < least else int(size) for size in sizes)


def leaves_sizes_open(node: Node) -> bool:
    """Whether the node creates an array some of whose sizes must follow from other nodes.

    An initial state of a recurrent layer is such an array.
    """
    if node.inputs or node.is_variable:
        return False
    if node.op == "_arange" and node.attrs.get("stop", "None").strip() == "None":
        return node.attrs.get("infer_range", "").strip().lower() in ("true", "1")
    texts = (text.strip() for text in node.attrs.get("shape", "").strip("()[] ").split(","))
    return any(text == "-1" or (text == "0" and not is_np_shape()) for text in texts)


def written(attributes: Mapping[str, str]) -> Mapping[str, str]:
    """Return the top-level attributes as they are written: with the mode, if it is NumPy's."""
    if not is_np_shape() or states_numpy_mode(attributes):
        return attributes
    return {**attributes, ATTRIBUTES: json.dumps({_KEY: ["int", 1], **saved(attributes)})}
