"""Models without inputs, run where nothing that they contain can end this process."""

from __future__ import annotations

from passlib.runtime.constants.running import run_constants

__all__ = ["run_constants"]
