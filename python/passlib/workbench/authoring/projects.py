"""A folder for a new pass, partitioner or operator."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Literal

from passlib.errors import PasslibError

Kind = Literal["pass", "pattern", "partitioner", "operator", "python"]

_TEMPLATES: Final = Path(__file__).with_name("templates")

_PLACE: Final = "@NAME@"


def new_project(name: str, folder: str | os.PathLike[str] = ".", kind: Kind = "pass") -> Path:
    """Make a folder with something that works, its build, and its test.

    Parameters
    ----------
    name : str
        Of the folder, and of the pass or operator: a name as in C.
    folder : path-like
        Where it is made.
    kind : {"pass", "pattern", "partitioner", "operator", "python"}
        In C++, the last in Python.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    PasslibError
        The name is none that a function can have, or there is something of this name already.
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise PasslibError(f"{name!r} cannot be the name of a pass: use letters, digits and _")
    target = Path(folder) / name
    if target.exists():
        raise PasslibError(f"{target} exists already")
    target.mkdir(parents=True)
    folders = [kind] if kind == "python" else ["common", kind]
    for source in sorted(file for each in folders for file in (_TEMPLATES / each).iterdir()):
        # Dots in front would keep the files out of packages.
        file = source.name.removesuffix(".txt").replace("NAME", name).replace("dot-", ".")
        (target / file).write_text(source.read_text("utf-8").replace(_PLACE, name), "utf-8")
    return target
