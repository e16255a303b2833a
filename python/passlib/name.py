"""Automatic names for operators, under MXNet's name of the module."""

from __future__ import annotations

from passlib.graph.names import NameManager, Prefix, current

__all__ = ["NameManager", "Prefix", "current"]
