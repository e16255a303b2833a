"""Optional packages: their imports, and what they add to the core by entry points."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from passlib.errors import PasslibError
from passlib.files.installation import OWN

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def require(module: str, *, extra: str) -> Any:
    """Return the imported module, or raise `PasslibError` that states how to install it.

    ``module`` is a dotted name, e.g. ``"onnx.shape_inference"``; ``extra`` is the extra of the
    distribution ``graph-passlib`` that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
        message = (
            f"this needs the Python package {error.name!r}, which is not installed; "
            f"install it with: pip install 'graph-passlib[{extra}]'"
        )
        raise PasslibError(message) from error


@cache
def extensions(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, those of this distribution first."""
    # Reads a file of each installed distribution; the import alone takes 10 ms.
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    points = entry_points(group=group)
    for point in sorted(points, key=lambda point: not point.dist or point.dist.name != OWN):
        found.setdefault(point.name, point)
    return found


@cache
def load_extensions(group: str) -> None:
    """Import the objects of a group, once."""
    for point in extensions(group).values():
        point.load()
