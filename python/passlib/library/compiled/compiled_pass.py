"""Passes of libraries."""

from __future__ import annotations

import os
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects import Dialect
from passlib.library import registry
from passlib.library.call import Backend, Call, Outcome
from passlib.library.handle import Library, standard_path
from passlib.library.lent import Lent, lent_arrays
from passlib.library.output import write, write_escaped

_WAYS: Final = ("flat", "json")
"""How a graph may cross, from the fastest way to the slowest."""


@dataclass(frozen=True)
class Compiled(Backend):
    """A pass or a partitioner of a library.

    Attributes
    ----------
    source : Library
    index : int
        Position in ``source.passes`` or ``source.partitioners``.
    """

    source: Library
    index: int

    @property
    def library(self) -> Library:
        """The library that has it."""
        return self.source

    @staticmethod
    def handover() -> str:
        """Return the fastest way in which graphs may cross, by the environment.

        Raises
        ------
        ValueError
            If ``PASSLIB_HANDOVER`` is no way.
        """
        if os.environ.get("PASSLIB_FORCE_JSON", "") not in ("", "0"):
            return "json"
        wanted = os.environ.get("PASSLIB_HANDOVER") or "flat"
        if wanted not in _WAYS:
            message = (
                f"the environment variable PASSLIB_HANDOVER is {wanted!r}, which is none of "
                f"{', '.join(map(repr, _WAYS))}"
            )
            raise ValueError(message)
        return wanted

    def lend(self, kind: str, given: MutableMapping[str, Any] | None, names: Sequence[str]) -> Lent:
        """Lend the memory of the arrays itself, if the pass needs it."""
        return Lent(kind, given, names, self.declaration.lending)


class CompiledPass(Compiled):
    """A pass of a library."""

    def reads_types(self, graph: _core.Graph) -> bool:
        """Whether the library asks for types.

        Types of operators of libraries are not inferred while one runs, whose lock is held.
        """
        asks = "flat" == self.handover() == self.source.handover
        return asks and graph.operators().keys().isdisjoint(registry.names())

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the pass; its output to ``std::cout`` goes to `sys.stdout`."""
        settings = _core.CallSettings(
            accept_args=call.args.accepts_new,
            accept_aux=call.aux.accepts_new,
            handover=self.handover(),
            consume=call.types_known,
            ordered=dialect.ordered,
        )
        result, own, params, gone = _core.run_pass(
            self.source.core,
            self.index,
            graph,
            dict(call.attributes),
            call.option_texts(declared=self.declaration.options is not None),
            *lent_arrays(call),
            settings,
            call.types,
            dtypes.from_code,
            write_escaped if self.source.path == str(standard_path()) else write,
        )
        return Outcome(result, own, params, gone)
