"""Compiling a library of passes."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from passlib.errors import PasslibError
from passlib.files.installation import get_include
from passlib.files.regular import replacing

Mode = Literal["release", "debug", "asan"]

_FLAGS: Final[dict[Mode, tuple[str, ...]]] = {
    "release": ("-O2",),
    "debug": ("-O0", "-g"),
    "asan": ("-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"),
}


class CompilerError(PasslibError):
    """The compiler refused the sources; it has written why to the standard error."""


def build(
    sources: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    mode: Mode = "release",
) -> Path:
    """Compile a library of passes, with the compiler of ``CXX`` and the flags of ``CXXFLAGS``.

    What the compiler prints goes to the standard error as it is. The library is moved into its
    place when it is complete, so that a process that has an earlier build loaded keeps that one.

    Parameters
    ----------
    sources : sequence of path-like
        Sources in C++11 or later.
    output : path-like, optional
        By default ``lib<name>.so`` in the current folder, by the name of the first source.
    mode : {"release", "debug", "asan"}
        Optimised; with symbols; or with AddressSanitizer, whose runtime the process that loads
        the library must have (``LD_PRELOAD``).

    Returns
    -------
    Path
        The library.

    Raises
    ------
    CompilerError
        There are errors in the sources.
    PasslibError
        There is no compiler.
    """
    compiler = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(compiler[0]) is None:
        raise PasslibError(f"there is no compiler {compiler[0]!r}; name one in CXX")
    places = [Path(source) for source in sources]
    target = Path(f"lib{places[0].stem}.so") if output is None else Path(output)
    with replacing(target) as path:
        command = [
            *compiler,
            *(
                "-shared",
                "-fPIC",
                "-fvisibility=hidden",
                "-std=c++11",
                "-Wall",
                *_FLAGS[mode],
                "-I",
                get_include(),
            ),
            *shlex.split(os.environ.get("CXXFLAGS", "")),
            *map(os.fspath, places),
            *("-o", os.fspath(path)),
        ]
        status = subprocess.run(command, check=False).returncode
        if status:
            raise CompilerError(f"{compiler[0]} ended with status {status}")
    return target
