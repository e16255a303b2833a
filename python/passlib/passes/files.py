"""Python files that register passes."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from passlib.errors import LoadError, PasslibError


def load_file(path: str | os.PathLike[str]) -> None:
    """Run a Python file, whose functions with `passlib.graph_pass` are passes from then on.

    The same file is run once in a process.

    Raises
    ------
    LoadError
        The file raises an exception, which is the cause.
    OSError
        It cannot be read.
    """
    place = Path(path).resolve()
    digest = hashlib.sha256(place.read_bytes() + bytes(place)).hexdigest()[:16]
    name = f"{place.stem}@{digest[:8]}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path} is no Python file, whose name ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, PasslibError) or not isinstance(error, Exception):
            raise
        raise LoadError(f"{path}: {type(error).__name__}: {error}") from error
