"""The namespaces of MXNet's operators, and objects whose attributes are their functions.

MXNet sorts its operators by the prefix of the registered name: ``_contrib_box_nms`` is
``contrib.box_nms``, ``_plus_scalar`` is ``_internal._plus_scalar``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from passlib.mxnet.schema import registry

NAMESPACES = ("contrib", "linalg", "sparse", "image", "random")
INTERNAL = "_internal"
"""The namespace of operators whose names begin with an underscore."""

_PREFIXES = tuple(f"_{namespace}_" for namespace in NAMESPACES)


def place(name: str) -> tuple[str, str]:
    """Return the namespace of a registered name, ``""`` for none, and its name there."""
    for namespace, prefix in zip(NAMESPACES, _PREFIXES, strict=True):
        # Random generators without "_like" are called through functions that choose between them.
        if name.startswith(prefix) and (namespace != "random" or name.endswith("_like")):
            return namespace, name[len(prefix) :]
    return (INTERNAL if name.startswith("_") else ""), name


def operator_names(namespace: str = "") -> Iterator[str]:
    """Iterate over the names in a namespace: ``""``, ``"contrib"``, ``"_internal"``, ..."""
    yield from _places(registry.generation()).get(namespace, {})


def registered_name(name: str, namespace: str = "") -> str | None:
    """Return the registered name of an operator, or None if the namespace has none."""
    return _places(registry.generation()).get(namespace, {}).get(name)


@lru_cache(maxsize=1)
def _places(generation: int) -> dict[str, dict[str, str]]:
    del generation  # the key of the cache: the table holds for one generation
    places: dict[str, dict[str, str]] = {}
    for name in registry.names():
        # Operators of the NumPy interface have other calling rules; they are read, not composed.
        if not name.startswith(("_np_", "_npi_", "_npx_", "_np")):
            namespace, short = place(name)
            places.setdefault(namespace, {})[short] = name
    return places


class Namespace:
    """The operators of one prefix and additional functions, as attributes.

    Parameters
    ----------
    module : str
        The module of the namespace as users write it: ``"sym"``, ``"nd"``.
    name : str
        ``""`` for the operators without prefix.
    find : callable
        Returns the function of an operator, from its name and that of the namespace; raises
        AttributeError for an unknown name.
    names : callable
        Returns the names of the operators of a namespace.
    functions : mapping of str to callable, optional
        Functions that take precedence over operators of the same name.
    """

    def __init__(
        self,
        module: str,
        name: str,
        find: Callable[[str, str], Callable[..., Any]],
        names: Callable[[str], Iterable[str]],
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        self._module = module
        self._name = name
        self._find = find
        self._names = names
        self._functions = functions or {}

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._functions.get(name) or self._find(name, self._name)

    def __dir__(self) -> list[str]:
        return sorted({*self._names(self._name), *self._functions})

    def __repr__(self) -> str:
        return f"<operators {self._module}.{self._name or 'op'}>"
