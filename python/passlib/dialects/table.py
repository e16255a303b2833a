"""The table of dialects.

Packages add dialects by an entry point of the group ``passlib.dialects`` whose object is a
`passlib.dialects.Dialect`: this distribution all but that of ONNX, which the core has itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from passlib.dialects.foreign_files import describe
from passlib.dialects.protocol import Dialect
from passlib.errors import FormatError, UnsupportedError
from passlib.files.optional import extensions
from passlib.files.regular import check_path

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OWN = "onnx"
"""The dialect of the core. The others register, those of this distribution too."""


def _registered() -> Mapping[str, EntryPoint]:
    return extensions("passlib.dialects")


def names() -> tuple[str, ...]:
    """Return the names of all dialects, in the order in which files are tried.

    Examples
    --------
    >>> from passlib.dialects import names
    >>> sorted(names())
    ['ark', 'dlprim', 'mxnet', 'nnvm', 'onnx']
    """
    return (*(name for name in _registered() if name != _OWN), _OWN)


def check_known(name: str) -> None:
    """Check that there is a dialect of a name, without importing it.

    Raises
    ------
    UnsupportedError
        There is none; the message lists the known ones.
    """
    if name != _OWN and name not in _registered():
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
    if name == _OWN:
        from passlib.dialects.onnx.dialect import dialect

        return dialect
    found: Dialect = _registered()[name].load()
    return found


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
    if place.suffix == ".onnx" and find(_OWN).recognises(place):
        return find(_OWN)
    known = []
    for name in names():
        known.append(dialect := find(name))
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
