"""Calls of compiled functions, known to the graph by name only."""

from __future__ import annotations

from typing import NoReturn

from passlib.families.nnvm.lowering.table import table
from passlib.families.nnvm.schema import TVM_OPERATOR
from passlib.lowering import Operation


@table.register(TVM_OPERATOR)
def tvm_op(op: Operation) -> NoReturn:
    """Refuse the call. Even ``__nop``, an alias of its input, may stand for a reshape."""
    op.unsupported("the graph does not state what a compiled function computes", "func_name")
