"""Loading compiled libraries, and finding what they hold."""

from __future__ import annotations

import difflib
import hashlib
import logging
import os
import threading
from pathlib import Path

from passlib import _core
from passlib.errors import LoadError, PasslibError
from passlib.library import registry
from passlib.library.handle import Backend, Library

__all__ = ["find_backend", "load", "load_standard", "loaded"]

logger = logging.getLogger(__name__)

MXNET_VERSION = 10901
"""The version that ``initialize`` gets by default: that of the MXNet that passlib follows."""

_STANDARD = "libpasslib_passes.so"
"""The library of standard passes, installed next to the native module."""

_lock = threading.RLock()
_libraries: list[Library] = []
_backends: dict[str, Backend] = {}


def load(
    path: str | os.PathLike[str],
    verbose: bool = True,
    *,
    replace: bool = False,
    version: int = MXNET_VERSION,
) -> Library:
    """Load a library and register its passes, partitioners and operators.

    Loading runs the library's code in this process, so load only code that you trust. Loading
    the same file again returns the same `Library` and changes nothing.

    Parameters
    ----------
    path : path-like
        A shared library built against ``lib_api.h``, passlib's or MXNet's. A relative path is
        taken from the current folder.
    verbose : bool
        Log the registered names at level INFO.
    replace : bool
        Let the library take over names that other libraries hold, or that MXNet has for an
        operator of its own. Also needed after a library was rebuilt, because the old build still
        holds its names.
    version : int
        The version of MXNet that the library's ``initialize`` gets: ``10000 * major +
        100 * minor + patch``.

    Returns
    -------
    Library

    Raises
    ------
    LoadError
        The file does not exist, is no library for this machine, lacks a function or symbol, has
        another version of the ABI, its ``initialize`` failed, or one of its names is taken. Then
        nothing is registered.
    """
    # Not resolve(): a symbolic link is opened, and reported, under its own name.
    absolute = os.path.abspath(path)  # noqa: PTH100
    with _lock:
        known, opening = _recall(absolute)
        if known is None:
            known = _open(absolute, opening, version)
            if verbose:
                _log(known)
        _register(known, replace=replace)
    return known


def load_standard(*, replace: bool = False) -> Library:
    """Load the passes that come with passlib.

    They run on the models of every dialect. `Library.passes` of the result lists their names;
    docs/standard-passes.md describes them.

    Parameters
    ----------
    replace : bool
        As for `load`.

    Returns
    -------
    Library

    Raises
    ------
    LoadError
        The library is missing from the installation, or a name is taken.
    """
    return load(Path(_core.__file__).with_name(_STANDARD), verbose=False, replace=replace)


def loaded() -> tuple[Library, ...]:
    """Return the libraries loaded so far, in the order of loading."""
    with _lock:
        return tuple(_libraries)


def find_backend(name: str) -> Backend:
    """Find a pass or a partitioner by name; of a library that has both, the partitioner.

    Raises
    ------
    PasslibError
        No loaded library has it; the message lists the known names.
    """
    with _lock:
        found = _backends.get(name)
        kinds = {known: backend.is_partitioner for known, backend in sorted(_backends.items())}
    if found is not None:
        return found
    near = difflib.get_close_matches(name, kinds, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    passes = ", ".join(known for known, is_partitioner in kinds.items() if not is_partitioner)
    partitioners = ", ".join(known for known, is_partitioner in kinds.items() if is_partitioner)
    have = [f"the loaded libraries have: {passes or 'no passes'}"]
    if partitioners:
        have.append(f"partitioners: {partitioners}")
    if not kinds:
        have = ["no library with passes is loaded; call passlib.library.load(path) first"]
    message = f"there is no pass or partitioner {name!r}{hint} ({'; '.join(have)})"
    raise PasslibError(message)


def _hash(path: str) -> str:
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        message = f"cannot load library {path!r}: the file does not exist"
        raise LoadError(message) from None
    except OSError as error:
        message = f"cannot load library {path!r}: {error.strerror}"
        raise LoadError(message) from error


def _recall(path: str) -> tuple[Library | None, str]:
    """Return the library if this file is loaded already, else the path to open it by."""
    digest = _hash(path)
    real = os.path.realpath(path)
    earlier = [library for library in _libraries if os.path.realpath(library.path) == real]
    for library in earlier:
        if library.sha256 == digest:
            return library, path
    stat = Path(path).stat()
    if any(library.inode == (stat.st_dev, stat.st_ino) for library in earlier):
        message = (
            f"cannot load library {path!r}: the file was overwritten while it was loaded, which "
            f"also changed the code in memory; build to a new file and move it into place, then "
            f"restart this process"
        )
        raise LoadError(message)
    # The dynamic linker takes equal paths for the same library, however new the file is.
    folder, name = os.path.split(path)
    return None, os.path.join(folder, *["."] * len(earlier), name)  # noqa: PTH118 (Path drops the dots)


def _open(path: str, opening: str, version: int) -> Library:
    digest = _hash(path)
    stat = Path(path).stat()
    core = _core.Library(opening, version)
    library = Library(
        path=path,
        sha256=digest,
        abi_version=core.abi_version,
        passes=tuple(core.passes),
        partitioners=tuple(name for name, _ in core.partitioners),
        ops=tuple(core.operators),
        core=core,
        inode=(stat.st_dev, stat.st_ino),
    )
    for kind, names in (("pass", library.passes), ("partitioner", library.partitioners)):
        for name in names:
            if names.count(name) > 1:
                message = f"cannot load library {path!r}: it registers the {kind} {name!r} twice"
                raise LoadError(message)
    return library


def _register(library: Library, *, replace: bool) -> None:
    backends = {name: Backend(library, i, False) for i, name in enumerate(library.passes)}
    partitioners = enumerate(library.partitioners)
    backends.update({name: Backend(library, i, True) for i, name in partitioners})
    for name in backends:
        holder = _backends.get(name)
        if holder is None or holder.library is library or replace:
            continue
        other = holder.library
        rebuilt = other.path == library.path
        kind = "partitioner" if holder.is_partitioner else "pass"
        message = (
            f"cannot load library {library.path!r}: the {kind} {name!r} is already registered by "
            + (f"an earlier build of it ({other.sha256[:12]})" if rebuilt else repr(other.path))
            + "; load with replace=True to let the new one take over"
        )
        raise LoadError(message)
    registry.require_names(library, replace=replace)
    _backends.update(backends)
    registry.register(library)
    if not any(library is known for known in _libraries):
        _libraries.append(library)


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
