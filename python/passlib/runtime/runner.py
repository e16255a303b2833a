"""Execution of a graph on arrays, with built-in operators and those of libraries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import passlib._core as _core
from passlib.arrays.shape_mode import is_np_shape
from passlib.dialects import Dialect
from passlib.library.operator import Operator
from passlib.lowering import Graph, TypeSpec
from passlib.runtime.cache import Cache
from passlib.runtime.custom_node import library_operators
from passlib.runtime.plan import Outcome, Plan
from passlib.runtime.sessions import Sessions
from passlib.runtime.settings import DEFAULT, Settings

_KEPT = 8
"""Plans kept for one graph in which sizes depend on the inputs."""


class Runner:
    """Runs a symbol on arrays.

    A graph of built-in operators is one model of ONNX Runtime. If libraries own some of its
    operators, it is cut at these, see `passlib.runtime.plan.Plan`.

    Parameters
    ----------
    graph : Graph
    dialect : Dialect
        That of the graph.
    """

    def __init__(self, graph: Graph, dialect: Dialect) -> None:
        self._graph = graph
        self._dialect = dialect
        self._sessions = Sessions(graph, dialect)
        self._built_in = False
        self._owned: dict[str, Operator] = {}
        self._plans: Cache[Plan] = Cache(_KEPT)

    def run(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        *,
        train: bool = False,
        record: bool = False,
        settings: Settings = DEFAULT,
    ) -> Outcome:
        """Compute the outputs.

        Parameters
        ----------
        feeds : mapping of str to array
            Variables whose values are read at each run.
        constants : mapping of str to array
            Variables that are compiled in. A session is reused only for the very same array
            objects, whose elements must not have changed since. A ``types.MappingProxyType`` is
            compared by identity: nobody changes what it shows.
        train : bool
            Run as in training.
        record : bool
            Record what gradients need.
        settings : Settings
            Of ONNX Runtime.

        Returns
        -------
        Outcome

        Raises
        ------
        FormatError
            A file that constants are mapped from was changed.
        GraphError
            The arrays do not fit the graph.
        UnsupportedError
            Something in the graph has no faithful lowering.
        OperatorError
            An operator of a library failed.
        PasslibError
            ONNX Runtime is absent, or failed.
        """
        arrays = [*feeds.values(), *constants.values()]
        _core.check_files(arrays)
        outcome = self._run(feeds, constants, train, record, settings)
        _core.check_files(arrays)
        return outcome

    def _run(
        self,
        feeds: Mapping[str, Any],
        constants: Mapping[str, Any],
        train: bool,
        record: bool,
        settings: Settings,
    ) -> Outcome:
        if not self._built_in and not self._owned:
            self._owned = library_operators(self._graph, self._dialect)
        if self._owned:
            plan = self._plan(feeds, constants, train=train)
            return plan.run(feeds, constants, train=train, record=record, settings=settings)
        outputs, updates = self._sessions.run_updating(feeds, constants, settings, train=train)
        # The graph ran, so it has no operators that only a library loaded later could bring.
        self._built_in = True
        return Outcome(list(outputs), updates)

    def _plan(self, feeds: Mapping[str, Any], constants: Mapping[str, Any], *, train: bool) -> Plan:
        """Return the plan: one for all inputs, unless sizes in the graph depend on them."""
        signature = None
        known = {}
        if self._dialect.has_open_sizes(self._graph):
            known = {
                name: TypeSpec(array.dtype, tuple(array.shape))
                for name, array in sorted({**constants, **feeds}.items())
            }
            signature = (tuple(known.items()), train, is_np_shape())

        def make() -> Plan:
            sizes = self._dialect.open_sizes(self._graph, known, train=train)
            return Plan(self._graph, self._dialect, self._owned, sizes)

        return self._plans.get(signature, make)
