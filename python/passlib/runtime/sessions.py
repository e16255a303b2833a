"""A cache of sessions: one graph compiled once for each kind of input."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from passlib.arrays.ndarray import NDArray
from passlib.arrays.sparse_array import BaseSparseNDArray
from passlib.dialects import Dialect
from passlib.files.optional import require
from passlib.lowering import Graph, TypeSpec
from passlib.runtime.session import Session

__all__ = ["Sessions", "as_dense"]

_KEPT = 8
"""Sessions kept for one graph. Each may hold its own rearranged copy of all weights."""

_Signature = tuple[tuple[tuple[str, Any, tuple[int, ...]], ...], bool]


class _Compiled(NamedTuple):
    constants: Mapping[str, Any]
    session: Session


class Sessions:
    """Runs a graph of built-in operators on arrays, and compiles it anew only where necessary.

    Parameters
    ----------
    graph : Graph
    dialect : Dialect
        That of the graph, which lowers it.
    """

    def __init__(self, graph: Graph, dialect: Dialect) -> None:
        self._graph = graph
        self._dialect = dialect
        self._sessions: OrderedDict[_Signature, _Compiled] = OrderedDict()
        self._lock = threading.Lock()

    def run_updating(
        self, feeds: Mapping[str, Any], constants: Mapping[str, Any], *, train: bool = False
    ) -> tuple[list[NDArray], dict[str, NDArray]]:
        """Compute the outputs, and the new content of variables that operators write to.

        Parameters and errors are those of `Runner.run`.

        Returns
        -------
        outputs : list of NDArray
        updates : dict of str to NDArray
            Such as running means, in training. Inputs never change.
        """
        arrays = {name: as_dense(array) for name, array in feeds.items()}
        session = self._session(arrays, constants, train=train)
        outputs, updates = session.run_updating(arrays)
        return (
            [output.view(NDArray) for output in outputs],
            {name: array.view(NDArray) for name, array in updates.items()},
        )

    def _session(
        self,
        feeds: Mapping[str, np.ndarray[Any, Any]],
        constants: Mapping[str, Any],
        *,
        train: bool,
    ) -> Session:
        kinds = tuple((name, feeds[name].dtype, feeds[name].shape) for name in sorted(feeds))
        signature = (kinds, train)
        with self._lock:
            known = self._sessions.get(signature)
            if known is not None and _same_objects(known.constants, constants):
                self._sessions.move_to_end(signature)
                return known.session
            # Before lowering asks for the package onnx alone, which would not be enough.
            require("onnxruntime", extra="run")
            specs = {name: TypeSpec(array.dtype, array.shape) for name, array in feeds.items()}
            # A variable that is fed must not be a weight as well.
            weights = {n: as_dense(array) for n, array in constants.items() if n not in feeds}
            session = Session(self._dialect.lower(self._graph, specs, weights, train=train))
            self._sessions[signature] = _Compiled(dict(constants), session)
            self._sessions.move_to_end(signature)
            if len(self._sessions) > _KEPT:
                self._sessions.popitem(last=False)
            return session


def as_dense(array: Any) -> np.ndarray[Any, Any]:
    """Return an array as a plain NumPy array; a sparse one is expanded."""
    return np.asarray(array.asnumpy() if isinstance(array, BaseSparseNDArray) else array)


def _same_objects(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() == right.keys() and all(left[name] is right[name] for name in left)
