"""Weights of a model: their mapping, their checks, and how the model holds them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Set
from operator import attrgetter
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

import passlib._core as _core
from passlib.arrays import BaseSparseNDArray, NDArray
from passlib.arrays.context import cpu
from passlib.arrays.dtypes import as_mapping
from passlib.arrays.views import computed, read_only
from passlib.dialects import Dialect, ModelData, find, infer
from passlib.errors import GraphError, listed
from passlib.model.graph import ModelGraph

_SHOWN = 20
"""Lines of a representation."""

_VIEWS: WeakValueDictionary[int, NDArray] = WeakValueDictionary()
"""The wrapper of each live NumPy array, shared between models."""


class Weights(Mapping[str, Any]):
    """Arrays by name, which can be looked at but not replaced.

    Arrays of NumPy, as readers of files make them, become an `NDArray` each when they are asked
    for: a large model has very many. ``arrays``: read at each access.
    """

    __slots__ = ("_arrays",)

    def __init__(self, arrays: dict[str, Any]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Any:
        array = self._arrays[name]
        _core.check_files((array,))
        array = computed(array)
        if type(array) is not np.ndarray:
            return array
        view = _VIEWS.get(id(array))
        if view is None or view.base is not array:
            view = _VIEWS[id(array)] = array.view(NDArray)
        return view

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def nbytes(self) -> int:
        """The size of all arrays, in bytes."""
        return sum(map(attrgetter("nbytes"), self._arrays.values()))

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**self, **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **self}

    def copy(self) -> dict[str, Any]:
        """Return a dictionary of the same arrays."""
        return dict(self)

    def __repr__(self) -> str:
        if not self._arrays:
            return "{}"
        names = list(self._arrays)
        lines = [f"    {name!r}: {_summary(self._arrays[name])}," for name in names[:_SHOWN]]
        if len(names) > _SHOWN:
            lines.append(f"    ... ({len(names)} in all)")
        return "\n".join(("{", *lines, "}"))


def check_weights(symbol: ModelGraph, model: ModelData) -> None:
    """Check that the weights of a model fit its graph.

    Shapes are inferred where the package onnx is installed, which inference needs. ``symbol``: the
    graph. ``model``: with the same graph. Raises `GraphError` if there are no variables of some
    names, or a shape contradicts the graph.
    """
    arrays = {**model.args, **model.aux}
    known = symbol.list_inputs()
    unknown = sorted(arrays.keys() - set(known))
    if unknown:
        lacking = [name for name in known if name not in arrays]
        raise GraphError(
            f"{len(unknown)} of {len(arrays)} weights belong to no variable of the graph: "
            f"{listed(unknown, 4)}; its variables without a weight are {listed(lacking, 4)}. "
            "Are they the weights of another model?"
        )
    if not arrays:
        return
    problem = _contradiction(symbol, arrays) or find(symbol.dialect).misfit(model)
    if problem:
        raise GraphError(f"the weights do not fit the graph: {problem}")


def _contradiction(symbol: ModelGraph, arrays: Mapping[str, Any]) -> str:
    """Return an error of inference that the weights cause; empty if there is none."""
    if importlib.util.find_spec("onnx") is None:
        return ""
    shapes = {name: array.shape for name, array in arrays.items()}
    try:
        infer(symbol, shapes, {name: array.dtype for name, array in arrays.items()})
    except GraphError as error:
        try:
            infer(symbol, {})
        except GraphError:
            return ""  # as saving and running will report
        return str(error)
    return ""


def replaced(
    what: str,
    present: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    others: Mapping[str, Any],
) -> dict[str, Any]:
    """Return weights with other values of some, which have the shape and type of those before.

    ``what``: "args" or "aux". ``others``: the model's weights of the other kind. Raises `TypeError`
    if a value is not an array, or its element type is another one; `GraphError` if a weight is one
    of ``others``, or its shape is another one.
    """
    values = {n: frozen(n, a) for n, a in as_mapping(what, given, "array").items()}
    for name, array in values.items():
        if not isinstance(name, str):
            raise TypeError(f"{what} has {name!r}, but must have arrays by names of variables")
        if name in others:
            other = "aux" if what == "args" else "args"
            raise GraphError(f"weight {name!r} is one of {other}, not of {what}")
        old = present.get(name)
        if old is None:
            continue
        if array.shape != old.shape:
            raise GraphError(f"weight {name!r} has shape {array.shape}; it was {old.shape}")
        if array.dtype != old.dtype:
            raise TypeError(
                f"weight {name!r} has element type {array.dtype}; it was {old.dtype}: convert it "
                f"with .astype({old.dtype.name!r})"
            )
    return {**present, **values}


def is_foreign(symbol: ModelGraph, dialect: Dialect, names: Set[str]) -> bool:
    """Whether arrays have names that the graph does not have, and lack some of its parameters."""
    if not names:
        return False
    known = set(symbol.list_inputs())
    if known.issuperset(names):
        return False
    return bool(dialect.parameters_among(symbol.graph, known - names))


def frozen(name: str, array: Any) -> Any:
    """Return a weight as the model holds it, see `passlib.arrays.views.read_only`.

    Raises `TypeError` if the weight is not an array.
    """
    if not isinstance(array, (np.ndarray, BaseSparseNDArray)):
        raise TypeError(f"weight {name!r} is not an array, but of type {type(array).__name__}")
    return read_only(array)


def owner(array: Any) -> Any:
    """Return the array whose whole memory this one is a view of, else the array itself.

    A dialect's template may hold the same array; pickle writes one object only once.
    """
    base = getattr(array, "base", None)
    while isinstance(base, np.ndarray) and _layout(base) == _layout(array):
        array, base = base, base.base
    return array


def _layout(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    context = array.context if isinstance(array, NDArray) else cpu()
    return array.ctypes.data, array.shape, array.strides, array.dtype, context


def _summary(array: Any) -> str:
    stype = array.stype if isinstance(array, BaseSparseNDArray) else ""
    return " ".join(filter(None, (stype, array.dtype.name, str(tuple(array.shape)))))


def remaining(
    before: ModelGraph, after: ModelGraph, *weights: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return weights without those of variables that one graph has and another lacks."""
    gone = set(before.graph.missing_variables(after.graph))
    if not gone:
        return list(weights)
    return [{n: array for n, array in arrays.items() if n not in gone} for arrays in weights]
