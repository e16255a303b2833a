"""Sequences of passes as data: their steps, their text, and how they are carried out."""

from __future__ import annotations

from passlib.library.pipeline.execution import Observer, check, execute, weights_differ
from passlib.library.pipeline.steps import Repeat, Step, Steps, name_of, steps_of, text_of
from passlib.library.pipeline.text import parse

__all__ = [
    "Observer",
    "Repeat",
    "Step",
    "Steps",
    "check",
    "execute",
    "name_of",
    "parse",
    "steps_of",
    "text_of",
    "weights_differ",
]
