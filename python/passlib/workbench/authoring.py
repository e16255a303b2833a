"""Libraries of passes: new projects, and builds."""

from __future__ import annotations

import importlib.util
import keyword
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from passlib.errors import PasslibError
from passlib.files.installation import get_include
from passlib.files.regular import replacing
from passlib.library.backends import STANDARD_NAMES

Kind = Literal["pass", "pattern", "partitioner", "operator", "python", "rule"]

_TEMPLATES: Final = Path(__file__).with_name("templates")

_PLACE: Final = "@NAME@"


def new_project(name: str, folder: str | os.PathLike[str] = ".", kind: Kind = "pass") -> Path:
    """Create a folder with a working example, its build and its test; return its path.

    Parameters
    ----------
    name : str
        Name of the folder, and of the pass or operator: a C identifier.
    folder : path-like
        Parent folder.

    Raises
    ------
    PasslibError
        The name is invalid, or that of a standard pass or a Python module, or exists already.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise PasslibError(f"{name!r} cannot be the name of a pass: use letters, digits and _")
    if name in STANDARD_NAMES:
        raise PasslibError(f"{name!r} is the name of a standard pass; choose another")
    if kind == "python" and (keyword.iskeyword(name) or importlib.util.find_spec(name)):
        raise PasslibError(f"{name!r} is a word or module of Python; choose another")
    target = Path(folder) / name
    if target.exists():
        raise PasslibError(f"{target} exists already")
    target.mkdir(parents=True)
    folders = [kind] if kind in ("python", "rule") else ["common", kind]
    for source in sorted(file for each in folders for file in (_TEMPLATES / each).iterdir()):
        # Packages omit files that begin with a dot.
        file = source.name.removesuffix(".txt").replace("NAME", name).replace("dot-", ".")
        (target / file).write_text(source.read_text("utf-8").replace(_PLACE, name), "utf-8")
    return target


Mode = Literal["release", "debug", "asan"]

_FLAGS: Final[dict[Mode, tuple[str, ...]]] = {
    "release": ("-O2",),
    "debug": ("-O0", "-g"),
    "asan": ("-O1", "-g", "-fsanitize=address", "-fno-omit-frame-pointer"),
}


class CompilerError(PasslibError):
    """The compiler rejected the sources; its messages are on the standard error."""


def build(
    sources: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    mode: Mode = "release",
) -> Path:
    """Compile a library of passes, with the compiler ``$CXX`` and the flags ``$CXXFLAGS``.

    The complete library replaces an existing file, so that processes that have loaded an earlier
    build keep it.

    Parameters
    ----------
    sources : sequence of path-like
        C++11 or later.
    output : path-like, optional
        By default ``lib<name>.so`` in the current folder, named after the first source.
    mode : {"release", "debug", "asan"}
        Optimised; with symbols; or with AddressSanitizer, whose runtime must be preloaded into the
        process that loads the library (``LD_PRELOAD``).

    Returns
    -------
    Path
        The library.

    Raises
    ------
    CompilerError
        The sources have errors.
    PasslibError
        There is no compiler.
    """
    compiler = shlex.split(os.environ.get("CXX", "")) or ["g++"]
    if shutil.which(compiler[0]) is None:
        raise PasslibError(f"compiler {compiler[0]!r} not found; set CXX")
    places = [Path(source) for source in sources]
    for place in places:
        if not place.is_file():
            raise PasslibError(f"{place}: there is no such source file")
    target = Path(f"lib{places[0].stem}.so") if output is None else Path(output)
    with replacing(target) as path:
        command = [
            *compiler,
            *("-shared", "-fPIC", "-fvisibility=hidden", "-std=c++11", "-Wall"),
            *(*_FLAGS[mode], "-I", get_include()),
            *shlex.split(os.environ.get("CXXFLAGS", "")),
            *map(os.fspath, places),
            *("-o", os.fspath(path)),
        ]
        status = subprocess.run(command, check=False).returncode
        if status:
            raise CompilerError(f"{compiler[0]} exited with status {status}")
    return target
