"""What MXNet itself determines about the nodes of a graph: names of operators, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from passlib import _core
from passlib.dialects.mxnet.schema import registry
from passlib.dialects.mxnet.schema.library_operator import LibraryOperator

__all__ = ["complete", "count_outputs"]


def complete(graph: _core.Graph) -> None:
    """Set the registered name of every operator, and the number of outputs that it states.

    MXNet writes ``_copy`` where a file or a pass said ``identity``. It also computes the numbers
    of outputs and ignores the ``node_row_ptr`` of a file.

    Raises
    ------
    GraphError
        An output is used that its node does not have.
    """
    graph.rename_operators(_registered_names(registry.generation()))
    counts = []
    table = _output_table(registry.generation())
    for position, op, attrs, present, carried in graph.doubtful_outputs(table):
        count = carried or count_outputs(op, attrs)
        if count > 0 and count != present:
            counts.append((position, count))
    if counts:
        graph.set_outputs(counts)
        graph.check()


@lru_cache(maxsize=1)
def _registered_names(generation: int) -> dict[str, str]:
    del generation  # a library may have taken an alias over
    found = ((name, registry.find(name)) for name in registry.names())
    return {name: op.name for name, op in found if op is not None and op.name != name}


@lru_cache(maxsize=1)
def _output_table(generation: int) -> _core.OutputTable:
    del generation  # the key of the cache: the table holds for one generation
    fixed, varying, carrying = {"null": 1}, set(), set()
    for name in registry.names():
        operator = registry.find(name)
        if operator is None:
            continue
        if operator.fixed_outputs is None:
            varying.add(name)
            if isinstance(operator, LibraryOperator) and operator.is_subgraph:
                carrying.add(name)
        else:
            fixed[name] = operator.fixed_outputs
    return _core.OutputTable(fixed, varying, carrying)


def count_outputs(op: str, attrs: Mapping[str, str]) -> int:
    """Count all outputs of an operator; 0 where only its uses determine them."""
    if op == "null":
        return 1
    operator = registry.find(op)
    return operator.num_outputs(attrs) if operator is not None else 0
