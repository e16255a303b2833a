"""Names of operators: automatic ones in MXNet's manner, and ones that nothing else has."""

from __future__ import annotations

from passlib.graph.scope import ThreadScope, innermost


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


class NameSource:
    """Generates names that are not in use yet, in constant time each on average.

    Parameters
    ----------
    used : set of str
        Grows with each name. The caller may add to it, and takes nothing out.
    """

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self._suffix: dict[str, int] = {}

    def fresh(self, wish: str) -> str:
        """Claim a name: ``wish`` itself if it is free, or ``wish`` followed by a number."""
        name, count = wish, self._suffix.get(wish, 0)
        while name in self.used:
            count += 1
            name = f"{wish}_{count}"
        self._suffix[wish] = count
        self.used.add(name)
        return name
