"""Automatic names for operators, in MXNet's manner: ``convolution0``, ``convolution1``, ...

Exported as ``passlib.name``.
"""

from __future__ import annotations

from passlib.graph.thread_scope import ThreadScope, innermost


class NameManager(ThreadScope):
    """Assigns each operator without a name the next free number of its kind.

    A context manager: inside the ``with`` block this manager names what the thread builds, with
    counters of its own. Derive from it and override `get` for another scheme.

    Examples
    --------
    >>> import passlib as mx
    >>> with mx.name.NameManager():
    ...     mx.sym.relu(mx.sym.var("x")).name
    'relu0'
    """

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}

    def get(self, name: str | None, hint: str) -> str:
        """Return the name of a new operator.

        Parameters
        ----------
        name : str or None
            The user's choice, which wins unless empty.
        hint : str
            The kind of operator, the stem of an automatic name.
        """
        if name:
            return name
        number = self._counters.get(hint, 0)
        self._counters[hint] = number + 1
        return f"{hint}{number}"


class Prefix(NameManager):
    """Puts a prefix before every name, also before names that the user chose.

    Examples
    --------
    >>> import passlib as mx
    >>> with mx.name.Prefix("left_"):
    ...     mx.sym.relu(mx.sym.var("x"), name="y").name
    'left_y'
    """

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix

    def get(self, name: str | None, hint: str) -> str:
        """Return the name with the prefix; parameters as of `NameManager.get`."""
        return self._prefix + super().get(name, hint)


def current() -> NameManager:
    """Return the manager that names the operators this thread builds.

    Examples
    --------
    >>> import passlib as mx
    >>> with mx.name.Prefix("left_") as manager:
    ...     mx.name.current() is manager
    True
    """
    return innermost(NameManager)
