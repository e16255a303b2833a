"""A second import name of passlib, in a folder that no other distribution writes to.

``import graph_passlib`` gives the module ``passlib`` of this distribution, also where the password
library of that name, which installs into the folder ``passlib`` too, has overwritten files of it:
the wheel has a copy of those in the folder ``spare``.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from passlib import *  # noqa: F403

_SPARE = Path(__file__).parent / "spare"


def _own() -> ModuleType:
    """Return the module ``passlib`` of this distribution, imported with the spare files first.

    Raises
    ------
    ImportError
        This process has imported the password library under the name that the modules of this
        package have.
    """
    imported = sys.modules.get("passlib")
    if imported is not None:
        if "graph_pass" in getattr(imported, "__all__", ()):
            return imported
        message = (
            f"this process has already imported another distribution's 'passlib', from "
            f"{getattr(imported, '__file__', None)}; the modules of graph-passlib have that name "
            f"too: use one of the two in a process"
        )
        raise ImportError(message, name="passlib")
    if not _SPARE.is_dir():  # an editable installation
        return importlib.import_module("passlib")
    folders = [str(_SPARE), str(_SPARE.parents[1] / "passlib")]
    spec = importlib.util.spec_from_file_location(
        "passlib", _SPARE / "__init__.py", submodule_search_locations=folders
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["passlib"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["passlib"]
        raise
    return module


sys.modules[__name__] = _own()
importlib.import_module("passlib.files.module_names").also(__name__, "passlib")
