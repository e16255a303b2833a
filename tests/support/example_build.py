"""Compilation of the libraries of example/, cached by content."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from places import ROOT
from plugin_build import CACHE, INCLUDE, compile_new, compiler_version, headers

__all__ = ["build_example"]

COMMAND = ("g++", "-shared", "-fPIC", "-std=c++11", "-O2", "-I", str(INCLUDE))


@functools.cache
def build_example(folder: str, source: str) -> Path:
    """Compile one source file of a folder of example/, and return the library's path."""
    digest = hashlib.sha256(" ".join(COMMAND).encode())
    digest.update(compiler_version(COMMAND[0]))
    digest.update(headers())
    for path in sorted((ROOT / "example" / folder).glob("*.[ch]*")):
        digest.update(path.read_bytes())
    target = CACHE / digest.hexdigest()[:16] / f"lib{Path(source).stem}.so"
    if not target.exists():
        compile_new(target, COMMAND, [ROOT / "example" / folder / source])
    return target
