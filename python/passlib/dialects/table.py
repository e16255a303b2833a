"""The table of dialects.

Other packages add dialects by an entry point of the group ``passlib.dialects`` whose object is a
`passlib.dialects.Dialect`.
"""

from __future__ import annotations

import importlib
import os
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from passlib.dialects.foreign_files import describe
from passlib.dialects.protocol import Dialect
from passlib.errors import FormatError, UnsupportedError
from passlib.files.regular import check_path

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_BUILT_IN = {
    "mxnet": "passlib.mxnet.dialect",
    "ark": "passlib.families.ark.dialect",
    "dlprim": "passlib.families.dlprim.dialect",
    "nnvm": "passlib.families.nnvm.dialect",
    "onnx": "passlib.dialects.onnx.dialect",
}
"""Module of each dialect; it has an object ``dialect``. The order is that of recognition."""

_SUFFIXES = {".onnx": "onnx"}
"""The dialect that is tried first on files of a suffix that no other one has."""

_GROUP = "passlib.dialects"


@lru_cache(maxsize=1)
def _foreign() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # which takes 20 ms to import

    return {point.name: point for point in entry_points(group=_GROUP)}


def names() -> tuple[str, ...]:
    """Return the names of all dialects, in the order in which files are tried.

    Examples
    --------
    >>> from passlib.dialects import names
    >>> sorted(names())
    ['ark', 'dlprim', 'mxnet', 'nnvm', 'onnx']
    """
    return (*_BUILT_IN, *(name for name in _foreign() if name not in _BUILT_IN))


def check_known(name: str) -> None:
    """Check that there is a dialect of a name, without importing it.

    Raises
    ------
    UnsupportedError
        There is none; the message lists the known ones.
    """
    if name not in _BUILT_IN and name not in _foreign():
        message = f"there is no dialect {name!r}; there are {', '.join(names())}"
        raise UnsupportedError(message)


@cache
def find(name: str) -> Dialect:
    """Look a dialect up by name.

    Raises
    ------
    UnsupportedError
        There is no such dialect; the message lists the known ones.

    Examples
    --------
    >>> from passlib.dialects import find
    >>> find("mxnet").title
    'MXNet'
    """
    check_known(name)
    if name in _BUILT_IN:
        found: Any = importlib.import_module(_BUILT_IN[name]).dialect
    else:
        found = _foreign()[name].load()
    dialect: Dialect = found
    return dialect


def recognise(path: str | os.PathLike[str]) -> Dialect:
    """Return the dialect of a model.

    Raises
    ------
    FormatError
        No dialect recognises the file, or it is something other than a file.
    OSError
        There is nothing at this path.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> from passlib.dialects import recognise
    >>> with tempfile.NamedTemporaryFile(suffix="-symbol.json") as file:
    ...     pl.sym.relu(pl.sym.var("x")).save(file.name)
    ...     print(recognise(file.name).name)
    mxnet
    """
    # A folder may share the prefix of an MXNet model.
    place = check_path(path, folders=True)
    # A wing is imported when its turn comes; a file of a known suffix is mostly what it says.
    first = [_SUFFIXES[place.suffix]] if place.suffix in _SUFFIXES else []
    for name in dict.fromkeys((*first, *_BUILT_IN)):
        dialect = find(name)
        if dialect.recognises(place):
            return dialect
    known = [find(name) for name in names()]
    for dialect in known[len(_BUILT_IN) :]:
        if dialect.recognises(place):
            return dialect
    if not place.exists():
        raise FileNotFoundError(2, "there is no such model", os.fspath(place))
    what = describe(place)
    if what:
        raise FormatError(f"{place}: this is not a model that passlib reads, but {what}")
    check_path(place)
    # The reader of the only format with this suffix says what is wrong with the file.
    named = [dialect for dialect in known if place.suffix.lower() in dialect.suffixes]
    if len(named) == 1:
        return named[0]
    message = (
        f"{place}: this is not a model of any known dialect ({', '.join(names())}); "
        "if it is one, name it with dialect=..."
    )
    raise FormatError(message)
