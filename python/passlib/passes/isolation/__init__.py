"""Pipelines in a process of their own, which a crash or a hang does not survive."""

from __future__ import annotations

from passlib.passes.isolation.client import end_children
from passlib.passes.isolation.failure import IsolatedError, reproducer_folder
from passlib.passes.isolation.reproducer import Reproducer
from passlib.passes.isolation.running import linked, play, run_child, run_isolated

__all__ = [
    "IsolatedError",
    "Reproducer",
    "end_children",
    "linked",
    "play",
    "reproducer_folder",
    "run_child",
    "run_isolated",
]
