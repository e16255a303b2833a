"""Automatic names of operators, in MXNet's module of this name."""

from __future__ import annotations

from passlib.graph.names import NameManager, Prefix, current

__all__ = ["NameManager", "Prefix", "current"]
