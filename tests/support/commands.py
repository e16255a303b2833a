"""Calls of the command line in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

__all__ = ["passlib_command"]


def passlib_command(
    *arguments: Any, folder: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run ``passlib`` with these arguments."""
    return subprocess.run(
        [sys.executable, "-m", "passlib", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        timeout=timeout,
    )
