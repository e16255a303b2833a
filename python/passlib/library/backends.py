"""The table of passes and partitioners that `optimize_for` finds by name."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from passlib.errors import PasslibError, did_you_mean, listed
from passlib.files.fork_lock import ForkLock
from passlib.files.optional import load_extensions
from passlib.library.call import Backend, standard_path
from passlib.library.declared import Declaration
from passlib.library.python import PythonPass

_SHOWN = 30
"""Names in a message."""

_lock = ForkLock()
_backends: dict[str, Backend] = {}
_standard: dict[str, Backend] = {}
"""Passes that come with passlib. Others take their names over only with ``replace=True``."""

_pipelines: dict[str, NamedPipeline] = {}
"""Their names are taken over in the same way."""

_STANDARD_NAMES = """
    cancelTransposes clean constantsToWeights decompose dropZeroStates foldBatchNormalization
    foldConstants foldLinear foldShapes fuseDequantize fuseFunctions fuseLayers fuseMatMulAdd
    fuseSkips fuseSpaceToDepth fuseTransposes inlineFunctions mergeClips mergeConcats
    mergeEqualNodes mergeEqualWeights mergeFactors mergeReshapes mergeSigns mergeSlices
    nameUniquely outline propagateCasts quantizeWeights rebuildShapes removeDeadNodes removeNoOps
    removeSequences resolveIf simplify toHalf weightsToConstants
"""
STANDARD_NAMES: Final = frozenset(_STANDARD_NAMES.split())
"""Names of the standard passes and pipelines, whose registration takes 0.3 s."""

_is_replacing: ContextVar[bool] = ContextVar("_is_replacing", default=False)

_OWN: Final = __name__.partition(".")[0] + "."
"""Where the functions of those in Python are defined."""


_PROVIDERS: list[Callable[[], object]] = [lambda: load_extensions("passlib.pass_modules")]
"""Functions that register passes which need no loading; called for unknown names."""


def provide(register_all: Callable[[], object]) -> None:
    """Call a function that registers passes when a name is not known; once is enough."""
    _PROVIDERS.append(register_all)


@dataclass(frozen=True)
class NamedPipeline(ABC):
    """A named pipeline, which may stand wherever a pass may.

    Attributes
    ----------
    declaration : Declaration
    exact : bool
        Whether its passes keep every bit of the results.
    """

    declaration: Declaration
    exact: bool

    @abstractmethod
    def check(self, options: Mapping[str, Any]) -> None:
        """Check options that the declaration accepts; OptionError for others."""

    @abstractmethod
    def run(self, model: Any, options: Mapping[str, Any], watch: Any = None) -> Any:
        """Run on a model and return another; ``watch(step, model, run)`` runs each step."""


def register_pipeline(pipeline: NamedPipeline) -> None:
    """Add a named pipeline."""
    _pipelines[pipeline.declaration.name] = pipeline


def pipelines() -> dict[str, NamedPipeline]:
    """Return all named pipelines, those whose name a pass has included."""
    _PROVIDERS[0]()  # not the libraries, which may be loading this
    return dict(_pipelines)


def find_pipeline(name: str) -> NamedPipeline | None:
    """Return a named pipeline; None if there is none, or a pass has its name."""
    if name in _backends or name in _standard:
        return None
    return pipelines().get(name)


def joined(pipeline: str) -> list[Backend]:
    """Return the passes that join a named pipeline, the standard ones first.

    A user's pass takes the place of a standard one of its name.
    """
    passes()
    with _lock:
        found: dict[str, Backend] = {}
        for backend in (*_standard.values(), *_backends.values()):
            joins = backend.declaration.joins
            if joins is not None and pipeline in joins.pipelines:
                found[backend.declaration.name] = backend
    return list(found.values())


def is_standard(name: str) -> bool:
    """Whether a pass of this name comes with passlib."""
    return _standard_pass(name) is not None


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
    found = _backends.get(name) or _standard_pass(name)
    if found is not None:
        return found
    known = passes()
    kinds = {True: "partitioners", False: "passes"}
    have = [f"pipelines: {listed(list(_pipelines))}"] + [
        f"{kind}: {listed(names, _SHOWN)}"
        for is_partitioner, kind in sorted(kinds.items())
        if (names := [n for n, d in known.items() if d.is_partitioner == is_partitioner])
    ]
    hint = did_you_mean(name, dict.fromkeys((*_pipelines, *known)), 1)
    raise PasslibError(f"there is no pass or partitioner {name!r}{hint} ({'; '.join(have)})")


def _standard_pass(name: str) -> Backend | None:
    for provider in (None, *_PROVIDERS):
        if provider is not None:
            # Without the lock, which the imports of another thread may be waiting for.
            provider()
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

    Standard passes are not checked. Raises `PasslibError` if a name is taken; the message begins
    with ``prefix`` and says by whom.
    """
    if _is_replacing.get():
        return
    with _lock:
        for name, backend in new.items():
            holder = _backends.get(name)
            if _is_standard(backend) or (holder is not None and _same_source(holder, backend)):
                continue
            if holder is not None:
                kind = "partitioner" if holder.declaration.is_partitioner else "pass"
                taken = f"the {kind} {name!r} is already registered by {_owner(holder, backend)}"
            elif name in STANDARD_NAMES:
                taken = f"{name!r} is the name of a standard pass"
            else:
                continue
            raise PasslibError(
                f"{prefix}{taken}; rename it, or let it take the name over with replace=True "
                "(--override in commands)"
            )


@contextlib.contextmanager
def replacing() -> Iterator[None]:
    """Let all passes that are registered meanwhile take names over."""
    token = _is_replacing.set(True)
    try:
        yield
    finally:
        _is_replacing.reset(token)


def register(new: Mapping[str, Backend]) -> None:
    """Add passes and partitioners, in place of those that have their names."""
    with _lock:
        for name, backend in new.items():
            table = _standard if _is_standard(backend) else _backends
            table.pop(name, None)  # see `order_of`
            table[name] = backend


def order_of(name: str) -> int:
    """Return the place of a pass in the order of registration; -1 for a standard one."""
    with _lock:
        return list(_backends).index(name) if name in _backends else -1


def is_one_of_ours(backend: str | Backend) -> bool:
    """Whether `find_backend` finds a pass that comes with passlib."""
    return _is_standard(find_backend(backend) if isinstance(backend, str) else backend)


def _is_standard(backend: Backend) -> bool:
    """Whether a pass comes with passlib."""
    if isinstance(backend, PythonPass):
        return backend.place.startswith(_OWN)
    library = backend.library
    return library is not None and Path(library.path).resolve() == standard_path().resolve()


def require_pipelines(new: Mapping[str, Backend], prefix: str) -> None:
    """Check that the pipelines which passes join are there.

    Raises `PasslibError` if one is not; the message begins with ``prefix``.
    """
    for name, backend in new.items():
        joins = backend.declaration.joins
        if joins is None or _is_standard(backend):
            continue
        known = pipelines()
        for pipeline in joins.pipelines:
            if pipeline not in known:
                hint = did_you_mean(pipeline, known, 1)
                raise PasslibError(
                    f"{prefix}the pass {name!r} joins {pipeline!r}, which is no named "
                    f"pipeline{hint}"
                )
            if known[pipeline].exact and not backend.declaration.exact:
                raise PasslibError(
                    f"{prefix}the pass {name!r} joins {pipeline!r}, whose passes keep every bit of "
                    "the results: declare it exact, or let it join another"
                )


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
