"""The table of passes and partitioners that `optimize_for` finds by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Final

from passlib import _core
from passlib.errors import LoadError, PasslibError, did_you_mean, listed
from passlib.files.fork_lock import ForkLock
from passlib.library.call import Backend
from passlib.library.declared import Declaration
from passlib.library.handle import MXNET_VERSION, standard_path
from passlib.library.python import PythonPass

__all__ = ["find_backend", "passes", "register", "require_free"]

_SHOWN = 30
"""Names in a message."""

_lock = ForkLock()
_backends: dict[str, Backend] = {}

_IN_PYTHON: Final = dict.fromkeys(
    (
        "foldConstants",
        "foldLinear",
        "foldShapes",
        "fuseMatMulAdd",
        "removeNoOps",
        "resolveIf",
    ),
    "passlib.passes.standard",
)
"""The module that registers a pass of passlib's own, imported when the pass is asked for."""


def find_backend(name: str) -> Backend:
    """Find a pass or a partitioner by name; of a library that has both, the partitioner.

    Raises
    ------
    PasslibError
        There is none of this name; the message lists the known names.
    """
    _make_ready([name])
    with _lock:
        found = _backends.get(name)
    if found is not None:
        return found
    known = passes()
    hint = did_you_mean(name, known, 1)
    kinds = {True: "partitioners", False: "passes"}
    have = [
        f"{kind}: {listed(names, _SHOWN)}"
        for is_partitioner, kind in sorted(kinds.items())
        if (names := [n for n, d in known.items() if d.is_partitioner == is_partitioner])
    ]
    if all(isinstance(backend, PythonPass) for backend in _backends.values()):
        have += ["no library with passes is loaded; call passlib.library.load(path) first"]
    if name in _standard_names():
        hint = "; it is a standard pass: call passlib.library.load_standard() first"
    message = f"there is no pass or partitioner {name!r}{hint} ({'; '.join(have)})"
    raise PasslibError(message)


def _standard_names() -> list[str]:
    """Return the names of the standard passes, whether they are loaded or not."""
    try:
        return _core.Library(str(standard_path()), MXNET_VERSION, lambda _: None).passes
    except LoadError:  # missing from the installation: load_standard says so
        return []


def passes() -> dict[str, Declaration]:
    """Return what every known pass and partitioner declares, by name in alphabetical order.

    ``print(passlib.library.passes()["foldBatchNormalization"])`` shows one.
    """
    _make_ready(_IN_PYTHON)
    with _lock:
        return {name: backend.declaration for name, backend in sorted(_backends.items())}


def require_free(new: Mapping[str, Backend], prefix: str) -> None:
    """Check that names are free, or held by a library that registers them again.

    Raises
    ------
    PasslibError
        A name is taken; the message begins with ``prefix`` and says by whom.
    """
    _make_ready(new)
    with _lock:
        for name, backend in new.items():
            holder = _backends.get(name)
            if holder is None or _same_source(holder, backend):
                continue
            kind = "partitioner" if holder.declaration.is_partitioner else "pass"
            raise PasslibError(
                f"{prefix}the {kind} {name!r} is already registered by {_owner(holder, backend)}; "
                "use replace=True to let the new one take over"
            )


def register(new: Mapping[str, Backend]) -> None:
    """Add passes and partitioners, in place of those that have their names."""
    with _lock:
        _backends.update(new)


def _make_ready(names: Iterable[str]) -> None:
    """Register those of the passes that come with passlib as Python functions."""
    # Without the lock, which the imports of another thread may be waiting for.
    for module in {_IN_PYTHON[name] for name in names if name in _IN_PYTHON}:
        importlib.import_module(module)


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
