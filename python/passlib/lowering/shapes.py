"""Partially known shapes: their merging, and how large they may be."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from passlib.errors import GraphError
from passlib.files.limits import current_limits
from passlib.graph.attributes import blame
from passlib.graph.node import Node
from passlib.lowering.types import Shape, shape_text


def merged(node: Node, index: int, known: Shape | None, wanted: Shape | None) -> Shape | None:
    """Merge the known shape of an input with the shape that its operator requires.

    Raises `GraphError` if the shapes contradict each other.

    Parameters
    ----------
    index : int
        Position of the input, for the message.
    known, wanted : Shape or None
        None if the rank is unknown.
    """
    if known is None or wanted is None:
        return known if wanted is None else wanted
    if len(known) != len(wanted) or any(
        a is not None and b is not None and a != b for a, b in zip(known, wanted, strict=True)
    ):
        name = node.inputs[index].node.name
        raise GraphError(
            f"{blame(node)}: input {index} ({name!r}) has shape {shape_text(known)}, "
            f"the operator and its other inputs require {shape_text(wanted)}"
        )
    return tuple(b if a is None else a for a, b in zip(known, wanted, strict=True))


def partial_shape(sizes: Iterable[int | None]) -> Shape:
    """Return a shape as users and attributes state it: a size of 0, -1 or None is unknown."""
    return tuple(None if size is None or size <= 0 else int(size) for size in sizes)


def check_extent(what: str, dtype: np.dtype | None, shape: Shape | None) -> None:
    """Refuse a value whose known sizes take more memory than `passlib.limits` permits.

    Raises `GraphError`.

    Parameters
    ----------
    what : str
        Names the value, for the message.
    dtype : numpy.dtype, optional
        By default of one byte.
    shape : tuple of (int or None), optional
        Unknown sizes count as 1.
    """
    if shape is None or 0 in shape:
        return
    size = math.prod(n for n in shape if n is not None) * (1 if dtype is None else dtype.itemsize)
    most = current_limits().largest_tensor()
    if size > most:
        raise GraphError(
            f"{what} has the shape {shape_text(shape)}, which takes {size:,} bytes; the limit is "
            f"{most:,}, see passlib.limits(tensor_bytes=...)"
        )
