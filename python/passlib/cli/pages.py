"""Pages as files."""

from __future__ import annotations

import os
from pathlib import Path

from passlib.files.regular import replacing


def write_page(path: str | os.PathLike[str], page: str) -> Path:
    """Write an HTML document whole, and return its path."""
    target = Path(path)
    with replacing(target) as made:
        made.write_text(page, "utf-8")
    return target
