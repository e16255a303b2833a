"""One call of a partitioner on a graph: its strategies in sequence."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from passlib import _core
from passlib.dialects import Dialect
from passlib.errors import PassError
from passlib.graph.node import Node
from passlib.library.call import Call, Outcome

__all__ = ["call_partitioner"]

_MERGE_EQUAL = "dedup_subgraph"
"""The option that the host obeys as well: one input for all uses of a value, and one output."""


def call_partitioner(call: Call, graph: _core.Graph, dialect: Dialect) -> Outcome:
    """Run the strategies of a partitioner, each on the graph that the previous one left.

    What the library prints to ``std::cout`` goes to `sys.stdout`.

    Parameters
    ----------
    call : Call
        Of a partitioner.
    graph : _core.Graph
        Stays as it is, unless ``call.consume``. Shapes and dtypes in its attributes hold for all
        strategies, because no strategy changes a value.
    dialect : Dialect
        Names outputs and finds auxiliary states.

    Returns
    -------
    Outcome
        Without new parameters; no variable is gone.

    Raises
    ------
    PassError
        The library failed, or chose subgraphs that would make a cycle; the message names
        partitioner, strategy and library.
    """
    backend = call.backend

    def suffix(op: str, attrs: Mapping[str, str], num_outputs: int, index: int) -> str:
        return dialect.output_name(Node(op, "", attrs, num_outputs=num_outputs), index)

    name, strategies = backend.library.core.partitioners[backend.index]
    if not strategies:
        message = (
            f"partitioner {name!r} of library {backend.library.path!r} has no strategies; "
            "addStrategy was not called where it is registered"
        )
        raise PassError(message)
    for strategy in range(len(strategies)):
        auxiliary, states = dialect.states(graph)
        settings = _core.PartitionSettings(
            strategy=strategy,
            auxiliary=auxiliary,
            states=states,
            merge_equal=(_MERGE_EQUAL, "True") in call.option_texts,
            consume=call.consume or strategy > 0,
            ordered=dialect.ordered,
        )
        graph = _core.run_partition(
            backend.library.core,
            backend.index,
            graph,
            dict(call.attributes),
            call.option_texts,
            list(call.args),
            list(call.aux),
            settings,
            suffix,
            sys.stdout.write,
        )
    return Outcome(graph, dict(call.attributes), [], [])
