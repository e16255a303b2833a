"""Smaller inputs and weights."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError
from passlib.graph.node import Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.workbench.reduction.search import Inputs, Search, changed, input_node, with_nodes

_FEW: Final = 16
"""Weights of integers with at most so many elements may be sizes."""

_MOST_TRIES: Final = 400


def with_small_sizes(search: Search, model: Model, inputs: Inputs) -> tuple[Model, Inputs]:
    """Return the model with inputs and weights that have fewer elements, and its inputs.

    Axes of one size usually belong together: a size is first made smaller wherever it stands, in
    shapes, in weights of few integers and in attributes; then each axis on its own, and each two.
    Before that, sizes in weights of few integers become -1, which stands for any.

    Parameters
    ----------
    search : Search
    model : Model
    inputs : mapping of str to array
        For each input of the model.
    """
    if set(model.inputs) - inputs.keys():
        return model, inputs
    found = model, inputs
    budget = _MOST_TRIES
    for stage in (_open_sizes, _sizes_everywhere, _single_axes, _pairs_of_axes):
        pending = stage(*found)
        while pending and budget:
            candidate = pending.pop(0).of(*found)
            if candidate is None:
                continue
            budget -= 1
            if search.changed_fails(*candidate):
                found = candidate
                pending = stage(*found)
    return found


def _open_sizes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, -1, ((name, place),))
        for name, array in _arrays(model, inputs).items()
        if _is_sizes(array) and not (array == -1).any()
        for place, size in enumerate(array.flat)
    ]


def _sizes_everywhere(model: Model, inputs: Inputs) -> list[_Change]:
    sizes = {n for array in _arrays(model, inputs).values() for n in array.shape}
    return [
        _Change(size, smaller, with_attributes=with_attributes)
        for size in sorted(sizes)
        for smaller in _smaller(size)
        for with_attributes in (True, False)
    ]


def _single_axes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, smaller, (axis,))
        for axis, size in _axes(model, inputs)
        for smaller in _smaller(size)
    ]


def _pairs_of_axes(model: Model, inputs: Inputs) -> list[_Change]:
    return [
        _Change(size, smaller, (one, two))
        for (one, size), (two, other) in itertools.combinations(_axes(model, inputs), 2)
        if size == other
        for smaller in _smaller(size)
    ]


def _axes(model: Model, inputs: Inputs) -> list[tuple[tuple[str, int], int]]:
    return [
        ((name, axis), size)
        for name, array in _arrays(model, inputs).items()
        for axis, size in enumerate(array.shape)
    ]


def _arrays(model: Model, inputs: Inputs) -> dict[str, np.ndarray[Any, Any]]:
    """Return the inputs and weights that are arrays of numbers."""
    fed = {name: inputs[name] for name in model.inputs}
    every = {**fed, **model.args, **model.aux}
    return {name: array for name, array in every.items() if _is_of_numbers(array)}


def _is_of_numbers(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind not in "OSU"


def _is_sizes(array: np.ndarray[Any, Any]) -> bool:
    """Whether a weight may be a list of sizes."""
    return array.dtype == np.int64 and array.ndim == 1 and array.size <= _FEW


def _smaller(size: int) -> list[int]:
    """Return the sizes to try instead of a size, the smallest first."""
    return [each for each in dict.fromkeys((1, 2, size // 4, size // 2)) if 0 < each < size]


class _Change:
    """A smaller size, everywhere or in some axes.

    Parameters
    ----------
    size, smaller : int
        -1 for an element of a list of sizes, whose place stands for the axis.
    axes : tuple of (str, int)
        The arrays and axes that change; all of this size by default.
    with_attributes : bool
        Attributes that state the size change as well.
    """

    def __init__(
        self,
        size: int,
        smaller: int,
        axes: tuple[tuple[str, int], ...] = (),
        *,
        with_attributes: bool = False,
    ) -> None:
        self._size = size
        self._smaller = smaller
        self._axes = axes
        self._with_attributes = with_attributes

    def of(self, model: Model, inputs: Inputs) -> tuple[Model, Inputs] | None:
        """Return a changed model and its inputs; None if no array changes."""
        fed = {name: self._cut(name, inputs[name]) for name in model.inputs}
        args, aux = (
            {name: self._cut(name, array) for name, array in weights.items()}
            for weights in (model.args, model.aux)
        )
        same = all(
            new[name] is old[name]
            for new, old in ((fed, inputs), (args, model.args), (aux, model.aux))
            for name in new
        )
        if same:
            return None
        replaced: dict[Node, Node] = {}
        for node in model.symbol.nodes():
            if node.name in fed and node.is_variable and fed[node.name] is not inputs[node.name]:
                array = fed[node.name]
                replaced[node] = input_node(node.name, TypeSpec(array.dtype, array.shape))
            elif self._with_attributes and not node.is_variable:
                replaced[node] = self._with_changed_attributes(node)
        try:
            candidate = with_nodes(model, replaced, args, aux)
        except PasslibError:
            return None
        return candidate, fed

    def _cut(self, name: str, array: Any) -> Any:
        """Return an array without the elements that go, or the array itself."""
        if not _is_of_numbers(array):
            return array
        if self._smaller < 0:
            return self._with_open_size(name, array)
        axes = [
            axis
            for axis, size in enumerate(array.shape)
            if size == self._size and (not self._axes or (name, axis) in self._axes)
        ]
        if axes:
            places = [slice(None)] * array.ndim
            for axis in axes:
                places[axis] = slice(self._smaller)
            array = np.ascontiguousarray(array[tuple(places)])
        if not self._axes and _is_sizes(array) and (array == self._size).any():
            array = np.where(array == self._size, np.int64(self._smaller), array)
        return array

    def _with_open_size(self, name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        places = [place for other, place in self._axes if other == name]
        if places:
            array = array.copy()
            array[places] = -1
        return array

    def _with_changed_attributes(self, node: Node) -> Node:
        attrs = {
            key: value
            if key.startswith("__")
            else re.sub(rf"(?<![\w.]){self._size}(?![\w.])", str(self._smaller), value)
            for key, value in node.attrs.items()
        }
        return changed(node, node.inputs, node.control_deps, attrs=attrs)
