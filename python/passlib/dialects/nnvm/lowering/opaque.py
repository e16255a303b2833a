"""Calls of compiled functions, of which a graph says the name and nothing else."""

from __future__ import annotations

from typing import NoReturn

from passlib.dialects.nnvm.lowering.table import table
from passlib.dialects.nnvm.operators import TVM_OPERATOR
from passlib.lowering import Operation

__all__ = ["tvm_op"]


@table.register(TVM_OPERATOR)
def tvm_op(op: Operation) -> NoReturn:
    """Refuse. Even ``__nop``, another name for its input, may stand for a reshape."""
    op.unsupported("what a compiled function computes is not in the graph", "func_name")
