"""Passes that are Python functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.errors import PassError, PassResultError, listed
from passlib.library.call import Backend, Call, Outcome
from passlib.library.python.graph import Graph
from passlib.library.python.parameters import Parameters


@dataclass(frozen=True)
class PythonPass(Backend):
    """A function that ``optimize_for`` runs by name.

    Attributes
    ----------
    body : callable
        Gets a `Graph`, which it changes, and the options as keywords. Returns None.
    place : str
        Module and qualified name of the function.
    """

    body: Callable[..., object]
    place: str

    @property
    def described(self) -> str:
        """Name and place, for messages."""
        return f"pass {self.declaration.name!r} (Python function {self.place})"

    def reads_types(self, graph: _core.Graph) -> bool:
        """Whether types are inferred when they are read: they always are."""
        return True

    def lend(
        self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]
    ) -> Parameters:
        """Show the arrays read-only."""
        return Parameters(kind, given, names)

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the function.

        Raises
        ------
        PassError
            The function raised; its exception is the cause. `PassResultError` if it left a graph
            that is not sound, or returned something.
        """
        editable = Graph(graph, self.described, dialect, call)
        try:
            returned = self.body(editable, **call.options)
            if returned is not None:
                raise PassResultError(
                    f"{self.described} returned {type(returned).__name__}; a pass changes the "
                    "graph in place and returns None"
                )
        except BaseException as error:
            editable.close()
            if isinstance(error, PassResultError) or not isinstance(error, Exception):
                raise
            message = f"{self.described} failed: {type(error).__name__}: {error}"
            raise PassError(message) from error
        self._check_attributes(call.attributes, editable.attributes)
        result, gone = editable.finish(ordered=dialect.ordered)
        if any(part.has_new for part in editable.parameters):
            names = result.variables({})[0]
            for part in editable.parameters:
                part.require_variables(names, self.described)
            both = sorted(editable.args.keys() & editable.aux.keys())
            if both:
                raise PassResultError(f"{self.described} left {listed(both)} in both args and aux")
        return Outcome(result, editable.attributes, ({}, {}), gone)

    def _check_attributes(self, before: Mapping[str, str], after: Mapping[Any, Any]) -> None:
        """Check that attributes of the graph which the function set are JSON."""
        for key, text in after.items():
            if before.get(key) == text:
                continue
            try:
                if not isinstance(key, str):
                    raise TypeError
                json.loads(text)
            except (TypeError, ValueError):
                raise PassResultError(
                    f"{self.described} set the attribute {key!r} of the graph to {text!r}, which "
                    "is no JSON text: write it with json.dumps"
                ) from None
