"""Symbolic shapes of all values of a graph, and contents of small ones, as the core infers them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from passlib._core import Dim, EditableValue, EditedFacts
from passlib.arrays import dtypes
from passlib.dialects.onnx.tensors import CODES, ELEMENT_TYPES
from passlib.passes.rulebook import assumptions
from passlib.passes.standard.facts.nodes import Model
from passlib.passes.standard.facts.running import edit_of

MOST_ELEMENTS = 256
"""Contents of larger tensors are not followed."""

Quantity = int | Dim
"""A dimension, or an element of a small tensor."""

Content = np.ndarray[Any, np.dtype[np.object_]]
"""An array of `int` and `Dim`."""

Sizes = tuple[Quantity, ...]


class Shapes:
    """Facts about the values of a graph that hold for all open dimensions.

    They are inferred at the first question; the graph must not have changed until then.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._assumptions = assumptions()

    @cached_property
    def _facts(self) -> EditedFacts:
        return edit_of(self.model.graph).facts(self._assumptions)

    def shape(self, value: EditableValue | None) -> Sizes | None:
        """Return the dimensions of a value; None for an unknown rank."""
        if value is None:
            return None
        array = self.model.array(value)
        return self._facts.shape(value) if array is None else array.shape

    def dtype(self, value: EditableValue) -> np.dtype[Any] | None:
        """Return the dtype of a value; None if unknown or not numeric."""
        name = ELEMENT_TYPES.get(self._type(value))
        return None if name is None else dtypes.as_dtype(name)

    def content(self, value: EditableValue | None) -> Content | None:
        """Return the elements of a small integer tensor as int and Dim, or None."""
        if value is None:
            return None
        array = self.model.array(value)
        if array is not None:
            whole = array.size <= MOST_ELEMENTS and array.dtype.kind in "iub"
            return _objects([int(item) for item in array.flat], array.shape) if whole else None
        items, shape = self._facts.items(value), self._facts.shape(value)
        if items is None or shape is None:
            return None
        return _objects(items, tuple(int(size) for size in shape if isinstance(size, int)))

    def _type(self, value: EditableValue) -> int:
        array = self.model.array(value)
        if array is not None:
            return CODES.get(array.dtype.name, 0)
        return self._facts.type(value)


def _objects(items: Any, shape: tuple[int, ...]) -> Content:
    made: Content = np.empty(len(items), object)
    made[:] = items
    shaped: Content = made.reshape(shape)
    return shaped
