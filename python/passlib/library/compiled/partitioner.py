"""Partitioners of libraries: their strategies in sequence."""

from __future__ import annotations

from collections.abc import Mapping

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.errors import PassError
from passlib.graph.node import Node
from passlib.library.call import Call, Outcome
from passlib.library.compiled.compiled_pass import Compiled
from passlib.library.lent import lent_arrays
from passlib.library.output import write

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
