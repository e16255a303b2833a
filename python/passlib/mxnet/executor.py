"""Executors, in MXNet's module of this name."""

from __future__ import annotations

from passlib.runtime.binding import bind, evaluate, simple_bind
from passlib.runtime.executor import Executor

__all__ = ["Executor", "bind", "evaluate", "simple_bind"]
