"""What rules about operators ask: shapes and contents of values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from passlib._core import EditableValue
from passlib.passes.standard.facts.sizes import Quantity

Content = np.ndarray[Any, np.dtype[np.object_]]
"""An array of `int` and `Size`."""


@dataclass(frozen=True)
class Ratio:
    """A quotient of sizes, in floating point.

    Attributes
    ----------
    number : int or Size
    divisor : int
        Above 0; 1 if the quotient is whole whatever the names stand for.
    """

    number: Quantity
    divisor: int

    @property
    def is_exact(self) -> bool:
        """Whether floating point has the quotient itself, not a number next to it."""
        return self.divisor & (self.divisor - 1) == 0


Reals = np.ndarray[Any, np.dtype[np.object_]]
"""An array of `Ratio`."""


class Known(Protocol):
    """What is known of the values of a graph."""

    def shape(self, value: EditableValue | None) -> tuple[Quantity, ...] | None:
        """Return the sizes of a value; None for an unknown rank."""

    def is_positive(self, size: Quantity) -> bool:
        """Whether a size is above 0 wherever the model does not fail."""

    def content(self, value: EditableValue | None) -> Content | None:
        """Return the elements of a small tensor of integers; None if they are not known."""

    def real(self, value: EditableValue | None) -> Reals | None:
        """Return the elements of a small tensor of real numbers; None if they are not known."""
