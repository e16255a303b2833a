"""Names that nothing else has."""

from __future__ import annotations


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
