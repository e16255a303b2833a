"""Record the public names of MXNet 1.9.1.

Usage: python make_names.py FILE, with the Python of the MXNet environment

Writes one JSON object: names by module or class, without other modules and what they import.
"""

from __future__ import annotations

import importlib
import json
import sys
from functools import reduce
from pathlib import Path
from types import ModuleType

OPERATORS = ("", ".contrib", ".image", ".linalg", ".op", ".random", ".sparse")
SPACES = (
    *(f"nd{each}" for each in OPERATORS),
    *(f"sym{each}" for each in OPERATORS),
    *("nd.NDArray", "nd.sparse.CSRNDArray", "nd.sparse.RowSparseNDArray", "sym.Symbol"),
    *("attribute", "base", "context", "init", "name", "random", "test_utils", "util", "viz"),
)
ORIGINS = {
    "nd": ("mxnet.ndarray", "mxnet._ctypes", "ndarray"),
    "sym": ("mxnet.symbol", "mxnet._ctypes", "symbol"),
    "init": ("mxnet.initializer",),
    "viz": ("mxnet.visualization",),
    "random": ("mxnet.random", "mxnet.ndarray"),
}


def is_own(space, owner, name):
    """Whether a name is the module's own, or an imported one."""
    found = getattr(owner, name)
    if isinstance(found, ModuleType):
        return f"{space}.{name}" in SPACES
    if isinstance(owner, type):
        return True
    origin = getattr(found, "__module__", None) or type(found).__module__
    if space == "base" and not origin.startswith("mxnet"):
        return origin == "ctypes" or name.endswith("Handle") or name.startswith("mx_")
    return origin.startswith(ORIGINS.get(space.split(".")[0], (f"mxnet.{space}",)))


def main():
    """Write the file."""
    mxnet = importlib.import_module("mxnet")
    found = {}
    for space in SPACES:
        owner = reduce(getattr, space.split("."), mxnet)
        names = [name for name in dir(owner) if not name.startswith("_")]
        found[space] = [name for name in names if is_own(space, owner, name)]
    lines = [f"{json.dumps(space)}: {json.dumps(names)}" for space, names in found.items()]
    Path(sys.argv[1]).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


if __name__ == "__main__":
    main()
