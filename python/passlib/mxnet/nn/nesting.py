"""Nested lists of symbols or arrays, the inputs and outputs of blocks, as flat lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from passlib.model.graph import ModelGraph

Shape: TypeAlias = "int | list[Shape]"
"""The nesting of a structure: a list, 0 for one item, or n for a symbol of n outputs."""


def flatten(structure: Any) -> tuple[list[Any], Shape]:
    """Return the items of a structure and their nesting.

    Parameters
    ----------
    structure : item, or list or tuple of structures
        Each output of a symbol is an item.

    Returns
    -------
    items : list
    shape : Shape
    """
    if isinstance(structure, (list, tuple)):
        items: list[Any] = []
        shape: list[Shape] = []
        for part in structure:
            inner, nested = flatten(part)
            items += inner
            shape.append(nested)
        return items, shape
    if isinstance(structure, ModelGraph) and len(structure) > 1:
        return list(structure), len(structure)
    return [structure], 0


def regroup(items: Iterator[Any], shape: Shape) -> Any:
    """Build a structure of this shape from its items.

    Parameters
    ----------
    items : iterator
        Only the items that the shape contains are consumed.
    shape : Shape

    Returns
    -------
    item or list of structures
    """
    if isinstance(shape, list):
        return [regroup(items, nested) for nested in shape]
    return [next(items) for _ in range(shape)] if shape else next(items)
