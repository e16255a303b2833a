"""Passes and partitioners of libraries."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects import Dialect
from passlib.errors import PassError
from passlib.graph.node import Node
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


_MERGE_EQUAL = "dedup_subgraph"
"""The option that the host obeys as well: one input for all uses of a value, and one output."""


class Partitioner(Compiled):
    """A partitioner of a library."""

    def run(self, call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
        """Run the strategies, each on the graph that the previous one left.

        What the library prints to ``std::cout`` goes to `sys.stdout`. Shapes and dtypes in the
        graph's attributes hold for all strategies, because no strategy changes a value. The
        outcome is without new parameters, and no variable is gone.

        Raises
        ------
        PassError
            The library failed, or chose subgraphs that would make a cycle; the message names
            partitioner, strategy and library.
        """

        def suffix(op: str, attrs: Mapping[str, str], num_outputs: int, index: int) -> str:
            return dialect.output_name(Node(op, "", attrs, num_outputs=num_outputs), index)

        name, strategies = self.source.core.partitioners[self.index]
        if not strategies:
            message = (
                f"partitioner {name!r} of library {self.source.path!r} has no strategies; "
                "addStrategy was not called where it is registered"
            )
            raise PassError(message)
        options = call.option_texts()
        for strategy in range(len(strategies)):
            # Only reviews are told which variables are auxiliary states.
            reviews = self.source.core.reviews_subgraphs(self.index, strategy)
            auxiliary, states = dialect.states(graph) if reviews else ({}, {})
            settings = _core.PartitionSettings(
                strategy=strategy,
                auxiliary=auxiliary,
                states=states,
                merge_equal=(_MERGE_EQUAL, "True") in options,
                consume=call.types_known or strategy > 0,
                ordered=dialect.ordered,
                force_json=self.handover() == "json",
            )
            graph = _core.run_partition(
                self.source.core,
                self.index,
                graph,
                dict(call.attributes),
                options,
                *lent_arrays(call),
                settings,
                suffix,
                write,
            )
        return Outcome(graph, dict(call.attributes), ({}, {}), [])
