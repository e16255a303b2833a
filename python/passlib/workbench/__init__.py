"""Questions about models: whether two compute the same, and what differs between them."""

from __future__ import annotations

from passlib.workbench.checking import Check, ResultsDifferError
from passlib.workbench.comparison import Comparison, compare
from passlib.workbench.graph_difference import ModelDifference, NodeChange, diff
from passlib.workbench.inputs import draw_inputs, input_shapes
from passlib.workbench.numbers import Difference, Tolerance

__all__ = [
    "Check",
    "Comparison",
    "Difference",
    "ModelDifference",
    "NodeChange",
    "ResultsDifferError",
    "Tolerance",
    "compare",
    "diff",
    "draw_inputs",
    "input_shapes",
]
