"""The outputs of a model, which an ARK file does not name."""

from __future__ import annotations

from passlib.families.ark import schema
from passlib.families.ark.reading.wiring import Output, Wired
from passlib.graph.node import VARIABLE


def find_heads(wired: Wired, rank: int) -> list[Output]:
    """Find the outputs of the model.

    They are the results, and views of results, in memory of this rank that are unused or used only
    by an operator without results. If there are none, they are all unused results, and if there
    are none of those either, all unused tensors.
    """
    used: set[Output] = set()
    recast: set[int] = set()
    for node in range(len(wired.nodes) - 1, -1, -1):
        op, _, _, inputs, count, _, _ = wired.nodes[node]
        if (node, 0) not in used and _is_recast(node, wired):
            recast.add(node)  # a value and its bytes count as one output
            continue
        if count > 0 or (operator := schema.find(op)) is None or operator.writes:
            used.update((source, index) for source, index, _ in inputs)
    computed = _computed(wired)
    free = [
        (node, index)
        for node, tensors in enumerate(wired.tensors)
        for index in range(len(tensors))
        if (node, index) not in used and node not in recast
    ]
    local = [
        (node, index)
        for node, index in free
        if computed[node] and wired.tensors[node][index].rank in (-1, rank)
    ]
    return local or [output for output in free if computed[output[0]]] or free


def _is_recast(node: int, wired: Wired) -> bool:
    """Whether a node is a view of another element type."""
    op = wired.op_of[node]
    inputs = wired.nodes[node].inputs
    if op is None or not op.virtual or not inputs or len(wired.tensors[node]) != 1:
        return False
    source, index, _ = inputs[0]
    return wired.tensors[source][index].dtype != wired.tensors[node][0].dtype


def _computed(wired: Wired) -> list[bool]:
    """Return for each node whether it returns computed values or views of them."""
    computed: list[bool] = []
    for node, (op, _, _, inputs, _, _, _) in enumerate(wired.nodes):
        source = wired.op_of[node]
        if op == VARIABLE:
            computed.append(False)
        elif source is not None and not source.virtual:
            computed.append(True)
        else:
            buffers = {tensor.buffer for tensor in wired.tensors[node]}
            computed.append(
                any(
                    computed[i] and wired.tensors[i][index].buffer in buffers
                    for i, index, _ in inputs
                )
            )
    return computed
