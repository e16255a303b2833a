"""The command line ``passlib``."""

from __future__ import annotations

from passlib.cli.command import main

__all__ = ["main"]
