"""Small programs that build symbols, for MXNet and passlib alike.

Each function of compose_layers.py, compose_names.py and compose_functions.py takes the module
(``mxnet`` or ``passlib``) and returns a symbol. The text that MXNet 1.9.1 writes for each is frozen
in tests/data/compose/<function>.json. Run this file inside the MXNet environment, with that folder
as argument, to write them again.
"""

from __future__ import annotations

import sys
from pathlib import Path

import compose_functions as _functions  # noqa: F401, fills the registry
import compose_layers as _layers  # noqa: F401, fills the registry
import compose_names as _names  # noqa: F401, fills the registry
from compose_registry import PROGRAMS


def write(folder: str) -> None:
    """Write the symbol of each program as composed by the installed MXNet."""
    import mxnet as mx

    for name, function in PROGRAMS.items():
        with mx.name.NameManager():
            symbol = function(mx)
        text = symbol.tojson(remove_amp_cast=False)
        Path(folder, f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
