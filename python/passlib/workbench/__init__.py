"""Compares, diffs, bisects and reduces models, and optimizes batches of them."""

from __future__ import annotations

from passlib.workbench.adapters import onnx_ir_pass
from passlib.workbench.batch import Outcome, batch
from passlib.workbench.bisection import Guilty, bisect
from passlib.workbench.certifying import Certify
from passlib.workbench.comparison import Check, Comparison, ResultsDifferError, compare, drawn
from passlib.workbench.failing import (
    CommandFails,
    CommandIsSlow,
    Differs,
    NothingFailsError,
    PipelineFails,
)
from passlib.workbench.graph_difference import ModelDifference, NodeChange, diff
from passlib.workbench.inputs import draw_inputs, input_shapes
from passlib.workbench.numbers import Difference, Tolerance
from passlib.workbench.optimizing import Request
from passlib.workbench.reduction import Reduced, reduce, reduce_both
from passlib.workbench.script import script

__all__ = [
    "Certify",
    "Check",
    "CommandFails",
    "CommandIsSlow",
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
    "onnx_ir_pass",
    "reduce",
    "reduce_both",
    "script",
]
