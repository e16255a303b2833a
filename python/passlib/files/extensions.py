"""What installed packages add to the core, which names none of them: entry points by group.

``passlib.dialects``       a `passlib.dialects.Dialect`, by its name
``passlib.pass_modules``   a module that registers passes when it is imported
``passlib.array_methods``  a module that adds methods to arrays when it is imported
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from passlib.files.installation import OWN

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


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
