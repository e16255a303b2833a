"""Passes in Python, and pipelines of passes."""

from __future__ import annotations

from passlib.errors import PipelineError
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.instruments import Dump, Instrument, Log, Timing, Verify
from passlib.passes.pipeline import Pipeline
from passlib.passes.result import PipelineResult, StepResult

__all__ = [
    "Dump",
    "Graph",
    "Instrument",
    "Log",
    "Pipeline",
    "PipelineError",
    "PipelineResult",
    "StepResult",
    "Timing",
    "Verify",
    "graph_pass",
]
