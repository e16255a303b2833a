"""The order of a file's ops: producers before consumers."""

from __future__ import annotations

from passlib.errors import GraphError, UnsoundFileError
from passlib.families.ark.document import Document
from passlib.families.ark.operators import FileOp
from passlib.families.ark.ordering import ordered


def order_units(document: Document, ops: list[FileOp]) -> list[FileOp]:
    """Order the ops so that nodes come after their producers; ops of a node stay together.

    Raises
    ------
    UnsoundFileError
        Nodes need each other in a circle, two have one Id, or a producer does not exist.
    """
    position: dict[int, int] = {}
    for number, unit in enumerate(document.units):
        if position.setdefault(unit["Id"], number) != number:
            raise UnsoundFileError(f"Nodes[{number}].Id: two nodes have the Id {unit['Id']}")
    makers = {tensor.id: op.place.unit for op in ops for tensor in op.results}
    needs: list[set[int]] = [set() for _ in document.units]
    for number, unit in enumerate(document.units):
        for i, producer in enumerate(unit["ProducerNodeIds"]):
            if producer not in position:
                raise UnsoundFileError(
                    f"Nodes[{number}].ProducerNodeIds[{i}]: there is no node {producer}"
                )
            needs[number].add(position[producer])
    for op in ops:
        own = op.place.unit
        needs[own].update(
            maker
            for tensor in (*op.reads, *op.writes)
            if (maker := makers.get(tensor.id, own)) != own
        )
    if all(need < number for number, wanted in enumerate(needs) for need in wanted):
        return ops
    try:
        order = ordered(needs, lambda n: f"Nodes[{n}]")
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_unit: list[list[FileOp]] = [[] for _ in document.units]
    for op in ops:
        by_unit[op.place.unit].append(op)
    return [op for number in order for op in by_unit[number]]
