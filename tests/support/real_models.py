"""Models that nobody here made, from packages that are installed or unpacked for the tests.

``PASSLIB_REAL_MODELS`` names a folder in which packages such as silero_vad are unpacked.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest


def find(name: str) -> Path:
    """Return the path of a model, or skip the test."""
    folder = os.environ.get("PASSLIB_REAL_MODELS")
    if folder and (Path(folder) / name).exists():
        return Path(folder) / name
    package, _, rest = name.partition("/")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"the package {package} is neither installed nor in PASSLIB_REAL_MODELS")
    return Path(spec.origin).parent / rest
