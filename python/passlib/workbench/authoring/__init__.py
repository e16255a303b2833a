"""Libraries of passes: a folder to begin with, and the compiler's call."""

from __future__ import annotations

from passlib.workbench.authoring.compiling import build
from passlib.workbench.authoring.projects import new_project

__all__ = ["build", "new_project"]
