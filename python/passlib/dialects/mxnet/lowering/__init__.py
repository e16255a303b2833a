"""MXNet operators as ONNX: each module in the rooms here lowers one family of operators."""

from __future__ import annotations

import functools

from passlib.dialects.mxnet.lowering.table import table
from passlib.dialects.mxnet.schema.library_operator import library_rules
from passlib.lowering import Graph, Lowerings

__all__ = ["load_table", "table_for"]


@functools.cache
def load_table() -> Lowerings:
    """Return the table of operators with every family registered."""
    table.fill(__name__, __path__)
    return table


def table_for(symbol: Graph) -> Lowerings:
    """Return the table without those operators that a library took over."""
    return load_table().without(library_rules(symbol))
