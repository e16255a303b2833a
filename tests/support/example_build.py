"""Compilation of the libraries of example/, cached by content."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from places import ROOT, TESTS
from plugin_build import CACHE, INCLUDE, compile_once, compiler_version, headers

COMMAND = ("g++", "-shared", "-fPIC", "-fvisibility=hidden", "-std=c++11", "-I", str(INCLUDE))


@functools.cache
def build_example(folder: str, source: str) -> Path:
    """Compile one source file of a folder of example/, and return the library's path."""
    return _build(ROOT / "example" / folder, source)


def extension_libraries() -> list[Path]:
    """Compile the libraries that extension_script.py takes, in its order."""
    return [
        build_example("lib_custom_op", "gemm_lib.cc"),
        build_example("lib_subgraph", "subgraph_lib.cc"),
        build_example("lib_pass", "pass_lib.cc"),
        _build(TESTS / "plugins", "extension_operators.cc"),
    ]


def _build(folder: Path, source: str) -> Path:
    digest = hashlib.sha256(" ".join(COMMAND).encode())
    digest.update(compiler_version(COMMAND[0]))
    digest.update(headers())
    for path in sorted({folder / source, *folder.glob("*.h")}):
        digest.update(path.read_bytes())
    target = CACHE / digest.hexdigest()[:16] / f"lib{Path(source).stem}.so"
    return compile_once(target, COMMAND, [folder / source])
