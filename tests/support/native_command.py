"""The command passlib-opt that ``make native`` builds, for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

PREFIX = Path(os.environ.get("PASSLIB_NATIVE", "/nowhere"))
TOOL = PREFIX / "bin" / "passlib-opt"


class Run(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    printed: str
    errors: str


def run(*arguments: str | Path) -> Run:
    """Run passlib-opt."""
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=False)
    return Run(done.returncode, done.stdout, done.stderr)
