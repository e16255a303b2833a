"""Passes that are Python functions: the graph that they change, and their calls."""

from __future__ import annotations

from passlib.library.python.graph import Graph
from passlib.library.python.python_pass import PythonPass

__all__ = ["Graph", "PythonPass"]
