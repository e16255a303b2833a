"""MXNet operators as ONNX; each module lowers one family of operators."""

from __future__ import annotations

import functools

from passlib.arrays.shape_mode import is_np_shape
from passlib.files.fork_lock import ForkLock
from passlib.lowering import Graph, Lowerings
from passlib.mxnet import schema
from passlib.mxnet.lowering.numpy_operators.arithmetic import IN_NUMPY_MODE, SAME
from passlib.mxnet.lowering.table import table
from passlib.mxnet.schema.registry import library_rules

__all__ = ["load_table", "table_for"]


_lock = ForkLock()
"""Held while a table is filled: `functools.cache` lets two threads do so at once."""


def load_table() -> Lowerings:
    """Return the table of operators with every family registered, under all names of each."""
    with _lock:
        return _filled_table()


@functools.cache
def _filled_table() -> Lowerings:
    table.fill(__name__, __path__)
    for name, other in SAME.items():
        table.alias(name, other)
    for name in schema.names():
        operator = schema.find(name)
        if operator is not None and table.find(operator.name) and not table.find(name):
            table.alias(name, operator.name)
    return table


def table_for(symbol: Graph) -> Lowerings:
    """Return the table for a symbol, in the mode that is set, without operators of libraries."""
    found = load_table()
    if is_np_shape():
        with _lock:
            found = _numpy_table()
    return found.without(library_rules(symbol))


@functools.cache
def _numpy_table() -> Lowerings:
    """Return the table for graphs in NumPy mode."""
    found = load_table().without(IN_NUMPY_MODE)
    for name, other in IN_NUMPY_MODE.items():
        found.alias(name, other)
    return found
