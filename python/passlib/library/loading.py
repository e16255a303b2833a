"""Loading compiled libraries, and finding what they hold."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import warnings
from collections.abc import Callable

import passlib._core as _core
from passlib.errors import FormatError, LoadError, PasslibError
from passlib.files.fork_lock import ForkLock
from passlib.files.regular import read_regular
from passlib.library import registry
from passlib.library.backends import provide, register, require_free, require_pipelines
from passlib.library.call import MXNET_VERSION, Backend, Library, standard_path
from passlib.library.compiled import CompiledPass, Partitioner
from passlib.library.declared import Declaration, OptionError, PassNames, read_declarations

logger = logging.getLogger(__name__)

_lock = ForkLock()
_libraries: list[Library] = []


def load(
    path: str | os.PathLike[str],
    verbose: bool = True,
    *,
    replace: bool = False,
    version: int = MXNET_VERSION,
) -> Library:
    """Load a library and register its passes, partitioners and operators.

    Loading runs the library's code in this process, so load only code that you trust. Loading
    the same file again returns the same `Library` and changes nothing. What the library prints to
    ``std::cout`` meanwhile goes to `sys.stdout`. A library that registers nothing is a warning.

    Parameters
    ----------
    path : path-like
        A shared library built against ``lib_api.h``, passlib's or MXNet's. A relative path is
        taken from the current folder.
    verbose : bool
        Log the registered names at level INFO.
    replace : bool
        Let the library take over names of other libraries and of standard passes, and names that
        MXNet has for an operator of its own. Also needed after a library was rebuilt, because the
        old build still holds its names.
    version : int
        The version of MXNet that the library's ``initialize`` gets: ``10000 * major +
        100 * minor + patch``.

    Raises
    ------
    LoadError
        The file does not exist, is no library for this machine, lacks a function or symbol, has
        another version of the ABI, its ``initialize`` failed, what its passes declare cannot be
        read, or one of its names is taken. Then nothing is registered.

    Examples
    --------
    >>> import passlib as pl
    >>> path = pl.library.load_standard().path
    >>> pl.library.load(path, verbose=False) is pl.library.load_standard()
    True
    """
    # Not resolve(): a symbolic link is opened, and reported, under its own name.
    absolute = os.path.abspath(path)  # noqa: PTH100
    printed: list[str] = []
    try:
        with _lock:
            known = _recall(absolute)
            is_new = known is None
            if known is None:
                known = _open(absolute, version, printed.append)
                if verbose:
                    _log(known)
            _register(known, replace=replace)
    finally:
        # After the lock, because this may run any Python.
        for text in printed:
            sys.stdout.write(text)
    if is_new and not (known.passes or known.partitioners or known.ops):
        warnings.warn(
            f"library {absolute!r} registered no pass, partitioner or operator; is a REGISTER_PASS "
            "missing, or its source file left out when it was compiled?",
            stacklevel=2,
        )
    return known


def load_standard(*, replace: bool = False) -> Library:
    """Load the passes that come with passlib.

    They run on the models of every dialect. `Library.passes` of the result lists their names;
    docs/standard-passes.md describes them. Passes of other libraries, and those in Python, may take
    their names over only with ``replace=True``.

    Parameters
    ----------
    replace : bool
        As for `load`.

    Raises
    ------
    LoadError
        The library is missing from the installation.

    Examples
    --------
    >>> import passlib as pl
    >>> "foldBatchNormalization" in pl.library.load_standard().passes
    True
    """
    return load(standard_path(), verbose=False, replace=replace)


def loaded() -> tuple[Library, ...]:
    """Return the libraries loaded so far, in the order of loading.

    Examples
    --------
    >>> import passlib as pl
    >>> pl.library.load_standard() in pl.library.loaded()
    True
    """
    with _lock:
        return tuple(_libraries)


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except FileNotFoundError:
        message = f"cannot load library {path!r}: the file does not exist"
        raise LoadError(message) from None
    except FormatError as error:
        message = f"cannot load library: {error}"
        raise LoadError(message) from None
    except OSError as error:
        message = f"cannot load library {path!r}: {error.strerror}"
        raise LoadError(message) from error


def _recall(path: str) -> Library | None:
    """Return the library if this file is loaded already."""
    digest = _hash(path)
    real = os.path.realpath(path)
    for library in _libraries:
        if library.sha256 == digest and os.path.realpath(library.path) == real:
            return library
    return None


def _open(path: str, version: int, write: Callable[[str], object]) -> Library:
    digest = _hash(path)
    core = _core.Library(os.fsencode(path), version, write)
    return Library(
        path=path,
        sha256=digest,
        abi_version=core.abi_version,
        passes=_declared(core, path),
        partitioners=tuple(name for name, _ in core.partitioners),
        ops=tuple(core.operators),
        core=core,
    )


def _declared(core: _core.Library, path: str) -> PassNames:
    """Return the names of a library's passes with what they declare."""
    try:
        declared = read_declarations(core.declarations, path)
    except (FormatError, OptionError) as error:
        message = f"cannot load library {path!r}: what its passes declare cannot be read: {error}"
        raise LoadError(message) from None
    return PassNames(declared.get(name) or Declaration(name, library=path) for name in core.passes)


def _register(library: Library, *, replace: bool) -> None:
    backends: dict[str, Backend] = {}
    for i, name in enumerate(library.passes):
        backends[name] = CompiledPass(library.passes[name], library, i)
    for i, name in enumerate(library.partitioners):
        declaration = Declaration(name, library=library.path, is_partitioner=True)
        backends[name] = Partitioner(declaration, library, i)
    prefix = f"cannot load library {library.path!r}: "
    try:
        require_pipelines(backends, prefix)
        if not replace:
            require_free(backends, prefix)
    except PasslibError as error:
        raise LoadError(str(error)) from None
    if replace:
        _require_own_data(library)
    registry.require_names(library, replace=replace)
    register(backends)
    registry.register(library)
    if not any(library is known for known in _libraries):
        _libraries.append(library)


def _require_own_data(library: Library) -> None:
    """Refuse a library that shares static data with one whose names it takes over."""
    unique = {*library.core.unique_symbols}
    for other in _libraries if unique else ():
        names = {*other.passes, *other.partitioners, *other.ops}
        shared = unique & {*other.core.unique_symbols}
        if other is library or not shared:
            continue
        if not names.isdisjoint((*library.passes, *library.partitioners, *library.ops)):
            message = (
                f"cannot load library {library.path!r}: it would share {min(shared)!r} with "
                f"{other.path!r}, whose names it takes over; compile it with -fvisibility=hidden, "
                "then restart this process"
            )
            raise LoadError(message)


def _log(library: Library) -> None:
    logger.info("Found %d operators in library", len(library.ops))
    for i, name in enumerate(library.ops):
        logger.info("\tOp[%d] %s", i, name)
    logger.info("Found %d partitioners in library", len(library.partitioners))
    for i, (name, strategies) in enumerate(library.core.partitioners):
        logger.info("\tPartitioner[%d] %s", i, name)
        for k, strategy in enumerate(strategies):
            logger.info("\t\tStrategy[%d] %s", k, strategy)
    logger.info("Found %d graph passes in library", len(library.passes))
    for i, name in enumerate(library.passes):
        logger.info("\tGraph Pass [%d] %s", i, name)


provide(load_standard)
