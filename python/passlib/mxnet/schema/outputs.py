"""What MXNet itself determines about the nodes of a graph: names of operators, outputs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import passlib._core as _core
from passlib.mxnet.schema import registry
from passlib.mxnet.schema.library_operator import LibraryOperator


def complete(graph: _core.Graph) -> None:
    """Set the registered name of every operator, and the number of outputs that it states.

    MXNet writes ``_copy`` where a file or a pass said ``identity``. It also computes the numbers
    of outputs and ignores the ``node_row_ptr`` of a file.

    Raises
    ------
    GraphError
        An output is used that its node does not have.
    """
    table = _operator_table(registry.generation())
    if not graph.rename_operators(table):
        return
    counts = []
    for op, attrs, nodes in graph.doubtful_outputs(table):
        by_attributes = None
        for position, present, carried in nodes:
            if not carried and by_attributes is None:
                by_attributes = count_outputs(op, attrs)
                table.add_counted(graph, position, by_attributes)
            count = carried or by_attributes or 0
            if count > 0 and count != present:
                counts.append((position, count))
    if counts:
        graph.set_outputs(counts)
        graph.check()
    graph.note_completed(table)


@lru_cache(maxsize=1)
def _operator_table(generation: int) -> _core.OperatorTable:
    del generation  # the key of the cache: a library may register operators or take an alias over
    fixed, varying, carrying = {"null": 1}, set(), set()
    registered: dict[str, str] = {}
    for name in registry.names():
        operator = registry.find(name)
        if operator is None:
            continue
        if operator.name != name:
            registered[name] = operator.name
        if operator.fixed_outputs is None:
            varying.add(name)
            if isinstance(operator, LibraryOperator) and operator.is_subgraph:
                carrying.add(name)
        else:
            fixed[name] = operator.fixed_outputs
    return _core.OperatorTable(fixed, varying, carrying, registered)


def count_outputs(op: str, attrs: Mapping[str, str]) -> int:
    """Count all outputs of an operator; 0 where only its uses determine them."""
    if op == "null":
        return 1
    operator = registry.find(op)
    return operator.num_outputs(attrs) if operator is not None else 0
