"""Sums and averages along axes."""

from __future__ import annotations

import numpy as np

from passlib.families.dlprim.lowering.common import floats, options_of, vector_of_one
from passlib.families.dlprim.lowering.table import table
from passlib.families.dlprim.shape_rules import reduced
from passlib.lowering import Operation, Value
from passlib.lowering.misfit import Misfit

_METHODS = {
    "sum": "ReduceSum",
    "sumsq": "ReduceSumSquare",
    "abssum": "ReduceL1",
    "mean": "ReduceMean",
}


@table.register("Reduction")
def reduction(op: Operation) -> Value:
    """Reduce the axes ``dims``, or those from ``start_axis`` on, and multiply by ``output_scale``.

    ``method`` is ``sum``, ``mean``, ``sumsq`` (of squares) or ``abssum`` (of absolute values).
    Without ``keep_dim`` the axes are removed; if none is left, the shape is (1).
    """
    (data,) = op.operands(1)
    floats(op, data)
    options = options_of(op)
    rank = op.rank_of(data)
    try:
        axes = reduced(options, rank)
    except Misfit as error:
        op.unsupported(str(error), "dims" if options["dims"] else "start_axis")
    indices = op.constant(axes, np.int64)
    keep = int(options["keep_dim"])
    result = op.emit(_METHODS[options["method"]], data, indices, keepdims=keep)
    if not keep and len(axes) == rank:
        result = vector_of_one(op, result)
    scale = options["output_scale"]
    return result if scale == 1 else op.emit("Mul", result, op.constant_like(scale, result))
