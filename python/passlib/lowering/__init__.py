"""Lowering of any graph to ONNX: the table of lowering functions and the walk that applies them.

A lowering function takes an `Operation` (one source node) and returns the `Value` of each of
its outputs. It is registered in its dialect's `Lowerings` under the source operator's names.
"""

from __future__ import annotations

from passlib.graph.attributes import blame
from passlib.lowering.lower import lower_graph
from passlib.lowering.operation import Operation
from passlib.lowering.table import LoweringFunction, Lowerings
from passlib.lowering.types import Lowered, Shape, TypeSpec, Value, describe, type_of
from passlib.lowering.walk import Graph

__all__ = [
    "Graph",
    "Lowered",
    "LoweringFunction",
    "Lowerings",
    "Operation",
    "Shape",
    "TypeSpec",
    "Value",
    "blame",
    "describe",
    "lower_graph",
    "type_of",
]
