"""A cache of sessions: one graph compiled once for each kind of input."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from passlib.arrays.ndarray import NDArray
from passlib.arrays.shape_mode import is_np_shape
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import Dialect
from passlib.files.fork_lock import ForkLock
from passlib.files.limits import release_unused
from passlib.files.optional import require
from passlib.graph.plain import whole
from passlib.lowering import Graph, TypeSpec
from passlib.runtime.session import Session
from passlib.runtime.settings import DEFAULT, Settings

_V = TypeVar("_V")


class _Slot(Generic[_V]):
    """The place of one value, which may still be in the making."""

    __slots__ = ("lock", "size", "value")

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.value: _V | None = None
        self.size = 0


class Cache(Generic[_V]):
    """Keeps the values that were used last. Making one delays only those who want the same.

    ``most``: number of values kept. ``most_bytes``: sum of their sizes; the value used last is kept
    even if it alone is larger.
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._slots: OrderedDict[Hashable, _Slot[_V]] = OrderedDict()
        self._lock = ForkLock()

    def get(
        self,
        key: Hashable,
        make: Callable[[], _V],
        *,
        fits: Callable[[_V], bool] = lambda _: True,
        size: Callable[[_V], int] = lambda _: 0,
    ) -> _V:
        """Return the value of a key.

        Parameters
        ----------
        make : callable
            Makes the value; its exceptions reach every caller that waits for it, and nothing is
            kept.
        fits : callable, optional
            Whether a kept value may still be used; otherwise it is made anew.
        size : callable, optional
            Returns the size of a value in bytes.
        """
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot()
            else:
                self._slots.move_to_end(key)
        with slot.lock:
            value = slot.value
            if value is not None and fits(value):
                return value
            slot.value = None
            try:
                value = make()
            except BaseException:
                self._forget(key, slot)
                raise
            slot.value = value
            slot.size = size(value)
        with self._lock:
            self._shrink()
        return value

    def _forget(self, key: Hashable, slot: _Slot[_V]) -> None:
        with self._lock:
            if self._slots.get(key) is slot:
                del self._slots[key]

    def _shrink(self) -> None:
        total = sum(slot.size for slot in self._slots.values())
        while len(self._slots) > self._most or (
            self._most_bytes is not None and total > self._most_bytes and len(self._slots) > 1
        ):
            total -= self._slots.popitem(last=False)[1].size


_KEPT = 8
_KEPT_BYTES = 256 << 20
"""Sessions kept for one graph, and the sum of their weights.

Sessions share the weights, but ONNX Runtime keeps a rearranged copy of most of them, those of
convolutions and matrix products, in each session.
"""

_OBJECT = np.dtype(object)
"""The element type of strings of any length."""

_WORTH_RELEASING = 1 << 20
"""Bytes of weights from which on memory is given back after compiling."""


class _Compiled(NamedTuple):
    constants: Mapping[str, Any]
    session: Session


class Sessions:
    """Runs a graph of built-in operators on arrays, and recompiles it only where necessary.

    ``dialect``: that of the graph, which lowers it.
    """

    def __init__(self, graph: Graph, dialect: Dialect) -> None:
        self._graph = graph
        self._dialect = dialect
        self._sessions: Cache[_Compiled] = Cache(_KEPT, _KEPT_BYTES)
        self._data_inputs: frozenset[str] | None = None
        self._last: tuple[Hashable, _Compiled] | None = None

    def run_updating(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        settings: Settings = DEFAULT,
        *,
        train: bool = False,
    ) -> tuple[list[Any], dict[str, NDArray]]:
        """Compute the outputs, and the new content of variables that operators write to.

        Parameters and errors are those of `Runner.run`.

        Returns
        -------
        outputs : list of NDArray
            Lists, dictionaries and None for sequences, maps and optional values.
        updates : dict of str to NDArray
            Such as running means, in training. Inputs never change.
        """
        arrays = {n: as_dense(v) if is_array(v) else v for n, v in feeds.items()}
        session = self._session(arrays, constants, settings, train=train)
        outputs, updates = session.run_updating(arrays)
        return (
            [o.view(NDArray) if isinstance(o, np.ndarray) else o for o in outputs],
            {name: array.view(NDArray) for name, array in updates.items()} if updates else {},
        )

    def _session(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        settings: Settings,
        *,
        train: bool,
    ) -> Session:
        # One session serves all sizes. Others that are fed are weights, of fixed sizes.
        if self._data_inputs is None:
            openly = self._dialect.runs_open_sizes
            names = self._dialect.data_inputs(whole(self._graph).graph) if openly else ()
            self._data_inputs = frozenset(names)
        open_sizes = self._data_inputs
        kinds = [_kind(name, value, name in open_sizes) for name, value in sorted(feeds.items())]
        key = tuple(kinds), train, settings, is_np_shape()
        last = self._last
        if last is not None and last[0] == key and last[1].constants is constants:
            return last[1].session  # the one that the cache used last

        def make() -> _Compiled:
            # Before lowering reports that onnx is missing: onnxruntime would be reported next.
            require("onnxruntime", extra="run")
            # A variable that is fed must not be a weight as well.
            weights = {n: as_dense(array) for n, array in constants.items() if n not in feeds}
            specs = {name: _spec(feeds[name], name in open_sizes) for name in sorted(feeds)}
            lowered = self._dialect.lower(self._graph, specs, weights, train=train)
            kept = constants if isinstance(constants, MappingProxyType) else dict(constants)
            made.append(Session(lowered, settings))
            return _Compiled(kept, made[0])

        made: list[Session] = []
        compiled = self._sessions.get(
            key,
            make,
            fits=lambda known: _same_objects(known.constants, constants),
            size=lambda known: known.session.weight_bytes,
        )
        if made and made[0].weight_bytes >= _WORTH_RELEASING:
            release_unused()
        self._last = key, compiled
        return compiled.session


def is_array(value: Any) -> bool:
    """Whether a value is an array; others are sequences, maps and optional values."""
    return isinstance(value, (np.ndarray, np.generic, BaseSparseNDArray))


def _spec(value: Any, open_sizes: bool) -> TypeSpec:
    if not is_array(value):
        return TypeSpec(None, None)
    return TypeSpec(_dtype(value), (None,) * value.ndim if open_sizes else value.shape)


def _kind(name: str, value: Any, open_sizes: bool) -> Hashable:
    """Return a cheap cache key: equal keys imply equal `_spec`."""
    if not is_array(value):
        return name
    dtype = _dtype(value)
    return name, dtype.num, dtype.str, value.ndim if open_sizes else value.shape


def _dtype(array: Any) -> np.dtype:
    return _OBJECT if array.dtype.kind == "U" else array.dtype


def as_dense(array: Any) -> np.ndarray[Any, Any]:
    """Return an array as a plain NumPy array; a sparse one is expanded."""
    return np.asarray(array.asnumpy() if isinstance(array, BaseSparseNDArray) else array)


def _same_objects(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left is right or (
        left.keys() == right.keys() and all(left[name] is right[name] for name in left)
    )
