"""The table of passes and partitioners that `optimize_for` finds by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from passlib.errors import PasslibError, did_you_mean, listed
from passlib.files.extensions import load_extensions
from passlib.files.fork_lock import ForkLock
from passlib.library.call import Backend
from passlib.library.declared import Declaration
from passlib.library.handle import standard_path
from passlib.library.python import PythonPass

PIPELINES: Final = ("simplify", "clean")
"""Names of pipelines that may stand where a pass may."""

_SHOWN = 30
"""Names in a message."""

_lock = ForkLock()
_backends: dict[str, Backend] = {}
_standard: dict[str, Backend] = {}
"""Passes that come with passlib. They yield their names to all others."""

_OWN: Final = __name__.partition(".")[0] + "."
"""Where the functions of those in Python are defined."""


_PROVIDERS: list[Callable[[], object]] = [lambda: load_extensions("passlib.pass_modules")]
"""What registers passes that nobody loads, called when a name is not known."""


def provide(register_all: Callable[[], object]) -> None:
    """Call a function that registers passes when a name is not known; once is enough."""
    _PROVIDERS.append(register_all)


def find_backend(name: str) -> Backend:
    """Find a pass or a partitioner by name; of a library that has both, the partitioner.

    Raises
    ------
    PasslibError
        There is none of this name; the message lists the known names.
    LoadError
        It may be a standard pass, whose library is missing from the installation.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.library.find_backend("removeDeadNodes").declaration.is_partitioner
    False
    """
    with _lock:
        found = _backends.get(name)
    if found is None:
        found = _standard_pass(name)
    if found is not None:
        return found
    known = passes()
    kinds = {True: "partitioners", False: "passes"}
    have = [f"pipelines: {listed(PIPELINES)}"] + [
        f"{kind}: {listed(names, _SHOWN)}"
        for is_partitioner, kind in sorted(kinds.items())
        if (names := [n for n, d in known.items() if d.is_partitioner == is_partitioner])
    ]
    hint = did_you_mean(name, dict.fromkeys((*PIPELINES, *known)), 1)
    raise PasslibError(f"there is no pass or partitioner {name!r}{hint} ({'; '.join(have)})")


def find_standard(name: str) -> Backend:
    """Find a pass that comes with passlib, whoever else has its name.

    Raises
    ------
    PasslibError
        There is none.
    LoadError
        The library of the standard passes is missing from the installation.
    """
    found = _standard_pass(name)
    if found is None:
        raise PasslibError(f"there is no standard pass {name!r}")
    return found


def _standard_pass(name: str) -> Backend | None:
    for provider in (None, *_PROVIDERS):
        if provider is not None:
            # Without the lock, which the imports of another thread may be waiting for.
            provider()
        with _lock:
            if name in _standard:
                return _standard[name]
    return None


def passes() -> dict[str, Declaration]:
    """Return what every known pass and partitioner declares, by name in alphabetical order.

    ``print(passlib.library.passes()["foldBatchNormalization"])`` shows one.

    Examples
    --------
    >>> import passlib as pl
    >>> "foldConstants" in pl.library.passes()
    True
    """
    for provider in _PROVIDERS:
        provider()
    with _lock:
        known = {**_standard, **_backends}
    return {name: backend.declaration for name, backend in sorted(known.items())}


def require_free(new: Mapping[str, Backend], prefix: str) -> None:
    """Check that names are free, or held by a library that registers them again.

    Standard passes yield their names, and look for no free ones.

    Raises
    ------
    PasslibError
        A name is taken; the message begins with ``prefix`` and says by whom.
    """
    with _lock:
        for name, backend in new.items():
            holder = _backends.get(name)
            if holder is None or _is_standard(backend) or _same_source(holder, backend):
                continue
            kind = "partitioner" if holder.declaration.is_partitioner else "pass"
            raise PasslibError(
                f"{prefix}the {kind} {name!r} is already registered by {_owner(holder, backend)}; "
                "use replace=True to let the new one take over"
            )


def register(new: Mapping[str, Backend]) -> None:
    """Add passes and partitioners, in place of those that have their names."""
    with _lock:
        for name, backend in new.items():
            (_standard if _is_standard(backend) else _backends)[name] = backend


def _is_standard(backend: Backend) -> bool:
    """Whether a pass comes with passlib."""
    if isinstance(backend, PythonPass):
        return backend.place.startswith(_OWN)
    library = backend.library
    return library is not None and Path(library.path).resolve() == standard_path().resolve()


def _same_source(holder: Backend, new: Backend) -> bool:
    """Whether a library registers its own name again, or a function was defined again."""
    if isinstance(holder, PythonPass) and isinstance(new, PythonPass):
        return holder.place == new.place
    return holder.library is not None and holder.library is new.library


def _owner(holder: Backend, new: Backend) -> str:
    if holder.library is None:
        return f"the Python function {holder.declaration.library}"
    if new.library is not None and holder.library.path == new.library.path:
        return f"an earlier build of it ({holder.library.sha256[:12]})"
    return repr(holder.library.path)
