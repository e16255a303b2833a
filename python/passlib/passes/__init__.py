"""Passes in Python, and pipelines of passes."""

from __future__ import annotations

from passlib.errors import PatternError, PipelineError
from passlib.library.declared import Joins
from passlib.library.python import Graph
from passlib.passes.function import graph_pass
from passlib.passes.instruments import Dump, Instrument, Log, Timing, Verify
from passlib.passes.match import Match
from passlib.passes.pipeline import Pipeline
from passlib.passes.result import PipelineResult, StepResult
from passlib.passes.rewriting import Found, find, rewrite
from passlib.passes.rules import Rule, Rules, why

__all__ = [
    "Dump",
    "Found",
    "Graph",
    "Instrument",
    "Joins",
    "Log",
    "Match",
    "PatternError",
    "Pipeline",
    "PipelineError",
    "PipelineResult",
    "Rule",
    "Rules",
    "StepResult",
    "Timing",
    "Verify",
    "find",
    "graph_pass",
    "rewrite",
    "why",
]
