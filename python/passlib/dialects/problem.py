"""What is wrong with a file of a model."""

from __future__ import annotations

from typing import Literal, NamedTuple

from passlib.errors import printable


class Problem(NamedTuple):
    """Something wrong with a file.

    Examples
    --------
    >>> import passlib as pl
    >>> str(pl.Problem("error", "node 'fc'", "it has no weight"))
    "error: node 'fc': it has no weight"
    """

    severity: Literal["error", "warning"]
    """An error makes the file unusable to its own framework, a warning does not."""
    place: str
    """A path inside the file such as ``Nodes[3].Op.Args``, or a node's name."""
    message: str
    """What is wrong."""

    def __str__(self) -> str:
        return printable(f"{self.severity}: {self.place}: {self.message}")
