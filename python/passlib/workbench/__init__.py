"""Questions about models: whether two compute the same, and what differs between them."""

from __future__ import annotations

from passlib.workbench.batch import Outcome, Request, batch
from passlib.workbench.bisection import Guilty, bisect
from passlib.workbench.checking import Check, ResultsDifferError
from passlib.workbench.comparison import Comparison, compare, drawn
from passlib.workbench.failing import CommandFails, Differs, NothingFailsError, PipelineFails
from passlib.workbench.graph_difference import ModelDifference, NodeChange, diff
from passlib.workbench.inputs import draw_inputs, input_shapes
from passlib.workbench.numbers import Difference, Tolerance
from passlib.workbench.reduction import Reduced, reduce

__all__ = [
    "Check",
    "CommandFails",
    "Comparison",
    "Difference",
    "Differs",
    "Guilty",
    "ModelDifference",
    "NodeChange",
    "NothingFailsError",
    "Outcome",
    "PipelineFails",
    "Reduced",
    "Request",
    "ResultsDifferError",
    "Tolerance",
    "batch",
    "bisect",
    "compare",
    "diff",
    "draw_inputs",
    "drawn",
    "input_shapes",
    "reduce",
]
