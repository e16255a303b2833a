"""The table of operators that loaded libraries registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from passlib import dialects
from passlib.dialects import Dialect
from passlib.errors import LoadError, UnsupportedError
from passlib.files.fork_lock import ForkLock
from passlib.library.call import Library

if TYPE_CHECKING:
    from passlib.library.operator import Operator

_lock = ForkLock()
_operators: dict[str, Operator] = {}


def _host() -> Dialect:
    """Return the dialect whose own operators those of libraries join: the ABI's."""
    for name in dialects.names():
        if dialects.find(name).hosts_operators:
            return dialects.find(name)
    raise UnsupportedError("no installed dialect has operators of libraries")


def find_operator(name: str) -> Operator | None:
    """Find the operator that a loaded library registered under a name; None if there is none."""
    with _lock:
        return _operators.get(name)


def names() -> list[str]:
    """Return the names of the operators of all loaded libraries."""
    with _lock:
        return list(_operators)


def require_names(library: Library, *, replace: bool) -> None:
    """Check that the names of a library's operators are free.

    ``replace``: whether it may take names over. Raises `LoadError` if a name belongs to another
    library or to MXNet, or occurs twice in this library.
    """
    for name in library.ops:
        prefix = f"cannot load library {library.path!r}: "
        if library.ops.count(name) > 1:
            message = f"{prefix}it registers the operator {name!r} twice"
            raise LoadError(message)
        holder = find_operator(name)
        if replace or (holder is not None and holder.library is library):
            continue
        if holder is not None:
            other = f"already registered by {holder.library.path!r}"
        elif _host().has_operator(name):
            other = f"one that {_host().title} itself has"
        else:
            continue
        message = (
            f"{prefix}the operator {name!r} is {other}; rename it, or let it take the name over "
            "with replace=True (--override in commands)"
        )
        raise LoadError(message)


def register(library: Library) -> None:
    """Make a library's operators known, after `require_names` has found their names free."""
    if not library.ops:
        return
    from passlib.library.operator import Operator

    with _lock:
        for index, name in enumerate(library.ops):
            holder = _operators.get(name)
            if holder is None or holder.library is not library:
                _operators[name] = operator = Operator(library, index)
                for dialect in (_host(), dialects.find("onnx")):
                    dialect.add_operator(operator)
