"""Pipelines in a process of their own, which a crash or a hang does not survive."""

from __future__ import annotations

from passlib.passes.isolation.reproducer import Reproducer
from passlib.passes.isolation.running import IsolatedError, play, run_isolated

__all__ = ["IsolatedError", "Reproducer", "play", "run_isolated"]
