"""Exports and requirements of a library's file, and the systems where it loads."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import passlib._core as _core
from passlib.errors import LoadError, short_repr
from passlib.library.call import MXNET_VERSION

_OPERATORS: Final = (
    *("CallFree", "CallParseAttrs", "CallInferShape", "CallInferType", "CallInferSType"),
    *("CallFCompute", "CallMutateInputs", "CallCreateOpState", "CallDestroyOpState"),
    *("CallFStatefulCompute", "RegSize", "RegGet"),
)
_PARTITIONERS: Final = (
    *("CallSupportedOps", "CallCreateSelector", "CallSelect", "CallSelectInput"),
    *("CallSelectOutput", "CallFilter", "CallReset", "CallReviewSubgraph", "RegSize"),
    *("RegGetCount", "RegGet"),
)
_ENTRY_POINTS: Final = (
    *("_opVersion", "_msgSize", "_msgGet", "initialize"),
    *(f"_op{name}" for name in _OPERATORS),
    *(f"_part{name}" for name in _PARTITIONERS),
    *("_passCallGraphPass", "_passRegSize", "_passRegGet"),
)
"""All functions that MXNet 1.9 looks up, in any library."""

_LATER: Final = {"_msgSize": 8, "_msgGet": 8, "_opCallDestroyOpState": 11}
"""The version of the ABI that brought a function."""

_MXNET: Final = {7: ("1.7",), 10: ("1.8",), 11: ("1.9", "2.0")}
"""The releases of MXNet that load a version of the ABI. Each loads only its own."""

_GCC: Final[dict[tuple[int, ...], str]] = {
    **dict.fromkeys(((3, 4, 19), (1, 3, 7)), "4.8"),
    **dict.fromkeys(((3, 4, 20), (1, 3, 8)), "4.9"),
    **dict.fromkeys(((3, 4, 21), (1, 3, 9)), "5.1"),
    **dict.fromkeys(((3, 4, 22), (1, 3, 10)), "6.1"),
    **dict.fromkeys(((3, 4, 23), (1, 3, 11)), "7.1"),
    (3, 4, 24): "7.2",
    (3, 4, 25): "8.1",
    **dict.fromkeys(((3, 4, 26), (1, 3, 12)), "9.1"),
    (3, 4, 27): "9.2",
    (3, 4, 28): "9.3",
    **dict.fromkeys(((3, 4, 29), (1, 3, 13)), "11.1"),
    (3, 4, 30): "12.1",
    **dict.fromkeys(((3, 4, 31), (1, 3, 14)), "13.1"),
    (3, 4, 32): "13.2",
    **dict.fromkeys(((3, 4, 33), (1, 3, 15)), "14.1"),
    (3, 4, 34): "15.1",
}
"""The first release of GCC whose libstdc++ has a version of symbols, GLIBCXX_ or CXXABI_."""


@short_repr
@dataclass(frozen=True)
class Abi:
    """What `abi` finds out about a library.

    Attributes
    ----------
    path : str
        Absolute path of the file.
    machine : str
        The processors that it was built for.
    entry_points : tuple of str
        The functions of the ABI that it exports, with those that only passlib's header has.
    abi_version, flat_version : int or None
        Version of the extension ABI, and of graphs as plain arrays, 0 for none. None if the library
        was not loaded.
    passes, partitioners, ops : tuple of str or None
        What it registers. None if it was not loaded.
    libraries, versions : tuple of str
        Shared libraries that it needs, and the versions of their symbols.
    compilers : tuple of str
        As compilers and linkers stated themselves in the file.
    standard_library : str
        ``"libstdc++"``, ``"libc++"``, or ``""`` if it links neither.
    string_abi : str
        The `std::string` of the symbols that it shares with other libraries: ``"new"`` or
        ``"old"``, of libstdc++ since GCC 5 or before; ``"libc++"``; ``""`` if none has one.
    loads : bool or None
        Whether it loaded in this process. None if that was not tried.
    problem : str
        Why it did not load.
    mxnet : tuple of str or None
        The releases of MXNet whose demands on a library it meets. None if it was not loaded.
    missing : tuple of str
        The functions that MXNet looks up and the library lacks.
    libc : str
        The C library that it needs: ``"glibc 2.34"``, that or a later one; ``"musl"``; ``""``.
    gcc : str
        The release of GCC whose libstdc++, or a later one, it needs; ``""`` for none.

    Examples
    --------
    >>> import passlib as pl
    >>> found = pl.library.abi(pl.library.load_standard().path, load=False)
    >>> found.string_abi, found.loads
    ('new', None)
    """

    path: str
    machine: str
    entry_points: tuple[str, ...]
    abi_version: int | None
    flat_version: int | None
    passes: tuple[str, ...] | None
    partitioners: tuple[str, ...] | None
    ops: tuple[str, ...] | None
    libraries: tuple[str, ...]
    versions: tuple[str, ...]
    compilers: tuple[str, ...]
    standard_library: str
    string_abi: str
    loads: bool | None
    problem: str
    mxnet: tuple[str, ...] | None
    missing: tuple[str, ...]
    libc: str
    gcc: str


def abi(path: str | os.PathLike[str], *, load: bool = True) -> Abi:
    """Report what a library exports and needs, what it was built with, and where it loads.

    Parameters
    ----------
    path : path-like
        A shared library for any 64-bit processor with this one's byte order.
    load : bool
        Load the library too, which runs its code in this process, so load only code that you
        trust. Nothing is registered. False: only read the file.

    Raises
    ------
    LoadError
        The file is missing, truncated, or no such library. A library that cannot be loaded here is
        no error: `Abi.problem` states why.

    Examples
    --------
    >>> import passlib as pl
    >>> found = pl.library.abi(pl.library.load_standard().path)
    >>> found.loads, found.abi_version, found.mxnet
    (True, 11, ('1.9', '2.0'))
    """
    absolute = os.path.abspath(path)  # noqa: PTH100  # as library.load: links keep their names
    file = _core.LibraryFile(os.fsencode(absolute))
    exports = {*_texts(file.exports)}
    versions, libraries = _texts(file.versions), _texts(file.needed)
    library, problem = None, ""
    if load:
        try:
            library = _core.Library(os.fsencode(absolute), MXNET_VERSION, lambda _: None)
        except LoadError as error:
            problem = str(error)
    version = library.abi_version if library else None
    # Without its version, a library is held against the newest one.
    missing = tuple(
        name
        for name in _ENTRY_POINTS
        if name not in exports and _LATER.get(name, 0) <= (version or 11)
    )
    extra = sorted(name for name in exports if name.startswith("_passlib"))
    symbols = "\n".join((*exports, *_texts(file.imports)))
    return Abi(
        path=absolute,
        machine=file.machine,
        entry_points=(*(name for name in _ENTRY_POINTS if name in exports), *extra),
        abi_version=version,
        flat_version=library.flat_version if library else None,
        passes=tuple(library.passes) if library else None,
        partitioners=tuple(name for name, _ in library.partitioners) if library else None,
        ops=tuple(library.operators) if library else None,
        libraries=libraries,
        versions=versions,
        compilers=_texts(file.compilers),
        standard_library=_standard_library(libraries),
        string_abi=_string_abi(symbols),
        loads=library is not None if load else None,
        problem=problem,
        mxnet=None if version is None else () if missing else _MXNET.get(version, ()),
        missing=missing,
        libc=_libc(libraries, versions),
        gcc=_gcc(versions),
    )


def _texts(values: Sequence[bytes]) -> tuple[str, ...]:
    return tuple(value.decode(errors="backslashreplace") for value in values)


def _standard_library(libraries: Sequence[str]) -> str:
    for name in ("libstdc++", "libc++"):
        if any(each.startswith(f"{name}.so") for each in libraries):
            return name
    return ""


def _string_abi(symbols: str) -> str:
    """Return the kind of std::string in mangled names.

    "Ss" is its short form, which stands for the old one only: at the beginning of a name, or behind
    a qualifier or the end of another part.
    """
    if "NSt7__cxx11" in symbols or "B5cxx11" in symbols:
        return "new"
    if re.search(r"^_ZNK?Ss|^_Z\w+[EIRKPvibcdfjlmyx0-9]Ss", symbols, re.MULTILINE):
        return "old"
    return "libc++" if "NSt3__1" in symbols else ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part[:9]) for part in re.findall(r"\d+", version, re.ASCII))


def _libc(libraries: Sequence[str], versions: Sequence[str]) -> str:
    if any(name == "libc.so" or name.startswith("libc.musl") for name in libraries):
        return "musl"
    numbers = [
        _numbers(version) for version in versions if re.fullmatch(r"GLIBC_[\d.]+", version, re.A)
    ]
    if "GLIBC_ABI_DT_RELR" in versions:
        numbers.append((2, 36))
    return f"glibc {'.'.join(map(str, max(numbers)))}" if numbers else ""


def _gcc(versions: Sequence[str]) -> str:
    """Return the release of GCC that has all versions of symbols of its C++ library."""
    needed = [v for v in versions if re.fullmatch(r"(GLIBCXX|CXXABI)_[\d.]+", v, re.ASCII)]
    if not needed:
        return ""
    newest = {prefix: max(key for key in _GCC if key[0] == prefix) for prefix in (1, 3)}
    for version in needed:
        numbers = _numbers(version)
        if numbers > newest.get(numbers[0], (0,)):
            return f"later than {_GCC[newest[3]]}, for {version}"
    releases = [_GCC.get(_numbers(version), "4.8") for version in needed]
    return max(releases, key=_numbers)
