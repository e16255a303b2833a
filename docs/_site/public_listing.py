"""The public names of the modules, from ``__all__``, and where each is documented."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

_KINDS = (("Classes", inspect.isclass), ("Functions", callable), ("Values", lambda found: True))
_DIRECTIVES = {"Classes": "autoclass", "Functions": "autofunction", "Values": "autodata"}
_MXNET = """
    symbol nd nn executor attribute base context contrib gluon initializer name random test_utils
    util viz
"""
MODULES = (
    *("passlib", "passlib.library", "passlib.passes", "passlib.workbench", "passlib.model"),
    *("passlib.dialects", *(f"passlib.mxnet.{name}" for name in _MXNET.split()), "passlib.mxnet"),
)
"""The public modules. What several export is documented at the first of them."""


def public(module: str) -> dict[str, Any]:
    """Return the public names of a module with their values; modules excepted."""
    found = importlib.import_module(module)
    values = {name: getattr(found, name) for name in sorted(found.__all__)}
    return {name: value for name, value in values.items() if not inspect.ismodule(value)}


def documented_at(module: str, value: Any) -> str | None:
    """Return the name under which an earlier module documents a class or function."""
    if not callable(value):
        return None
    for earlier in MODULES[: MODULES.index(module)]:
        for name, other in public(earlier).items():
            if other is value:
                return f"{earlier}.{name}"
    return None


def lines(module: str) -> Iterator[str]:
    """Yield reStructuredText for the public names of a module: kinds, then names."""
    kinds: dict[str, list[str]] = {title: [] for title, _ in _KINDS}
    elsewhere = {}
    for name, value in public(module).items():
        place = documented_at(module, value)
        if place is None:
            kinds[next(title for title, fits in _KINDS if fits(value))].append(name)
        else:
            elsewhere[name] = place
    for title, names in kinds.items():
        if names:
            yield from ("", f".. rubric:: {title}", "")
        for name in names:
            yield f".. {_DIRECTIVES[title]}:: {module}.{name}"
            yield from ("   :members:", "") if title == "Classes" else ("",)
    if elsewhere:
        yield from ("", ".. rubric:: Names of other pages", "")
    for name, place in elsewhere.items():
        yield f"- ``{name}``: :py:obj:`{place}`"
