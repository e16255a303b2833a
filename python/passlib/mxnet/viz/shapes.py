"""Shapes of a symbol's values, as descriptions use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays.given import as_shapes, as_types
from passlib.dialects import infer
from passlib.errors import GraphError
from passlib.graph.node import Node
from passlib.lowering import Shape
from passlib.model.graph import ModelGraph
from passlib.mxnet.symbol.symbol import Symbol


def require_symbol(symbol: Any) -> ModelGraph:
    """Return the symbol; TypeError if it is something else."""
    if not isinstance(symbol, ModelGraph):
        raise TypeError(f"expected a symbol, not {type(symbol).__name__}")
    return symbol


def known_shapes(
    symbol: Symbol,
    shape: Mapping[str, Sequence[int]] | None,
    dtype: Mapping[str, Any] | None = None,
) -> dict[Node, Shape]:
    """Infer the shapes of the first output of each node.

    Parameters
    ----------
    symbol : Symbol
    shape : mapping of str to shape, optional
        Of the inputs; without it nothing is known.
    dtype : mapping of str to dtype, optional
        Element types of the inputs; float32 for others.

    Returns
    -------
    dict of Node to shape
        Without those that are unknown.

    Raises
    ------
    GraphError
        A shape is given for a variable that does not exist, or shapes contradict each other.
    """
    if shape is None:
        return {}
    unknown = sorted(set(shape) - set(symbol.list_inputs()))
    if unknown:
        raise GraphError(
            f"the symbol has no variable {', '.join(map(repr, unknown))}; "
            f"it has {', '.join(symbol.list_inputs())}"
        )
    shapes, types = as_shapes("shape", shape), as_types("dtype", dtype)
    found = infer(symbol, shapes, types, default_dtype=np.dtype(np.float32))
    first = {node: specs[0].shape for node, specs in found.outputs.items()}
    return {node: sizes for node, sizes in first.items() if sizes is not None}


def text_of(shape: Shape | None) -> str:
    """Spell a shape without its first axis, the batch: ``3x224x224``; unknown sizes are ``?``."""
    return "x".join("?" if size is None else str(size) for size in (shape or ())[1:])
