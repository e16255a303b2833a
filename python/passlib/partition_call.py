"""One call of a partitioner on a graph: its strategies, one after the other."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from passlib import _core
from passlib.errors import PassError
from passlib.node import Node
from passlib.pass_call import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from passlib.dialects.protocol import Dialect
    from passlib.library import Backend
    from passlib.pass_call import Param

__all__ = ["call_partitioner"]

_MERGE_EQUAL = "dedup_subgraph"
"""The option that the host obeys too: one input for all uses of a value, and one output."""


def call_partitioner(
    backend: Backend,
    graph: _core.Graph,
    options: Mapping[str, object],
    dialect: Dialect,
    *,
    consume: bool = False,
    attributes: Mapping[str, str] | None = None,
    args: Sequence[Param] = (),
    aux: Sequence[Param] = (),
) -> Outcome:
    """Run the strategies of a partitioner, each on the graph that the one before has left.

    What the library prints to ``std::cout`` goes to `sys.stdout`.

    Parameters
    ----------
    backend : Backend
        A partitioner.
    graph : _core.Graph
        Stays as it is, unless ``consume``. Shapes and dtypes in its attributes hold for all
        strategies, for no strategy changes a value.
    options : mapping
        Reach the library as ``str(value)``.
    dialect : Dialect
        Names outputs and tells auxiliary states.
    consume : bool
        Whether ``graph`` may be used up, for nobody needs it any more.
    attributes : mapping of str to str, optional
        Attributes of the graph that the library sees, as JSON by key.
    args, aux : sequence of Param

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
    texts = [(key, str(value)) for key, value in options.items()]
    states_of = getattr(dialect, "states", None)

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
        auxiliary, states = states_of(graph) if states_of is not None else ({}, {})
        settings = _core.PartitionSettings(
            strategy=strategy,
            auxiliary=auxiliary,
            states=states,
            merge_equal=(_MERGE_EQUAL, "True") in texts,
            consume=consume or strategy > 0,
            ordered=dialect.ordered,
        )
        graph = _core.run_partition(
            backend.library.core,
            backend.index,
            graph,
            dict(attributes or {}),
            texts,
            list(args),
            list(aux),
            settings,
            suffix,
            sys.stdout.write,
        )
    return Outcome(graph, dict(attributes or {}), [], [])
