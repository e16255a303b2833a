"""The standard passes that are Python functions, imported when one of them is asked for."""

from __future__ import annotations

from passlib.passes import simplification as simplification
from passlib.passes.standard import (  # noqa: F401 (they register passes)
    decompose,
    groups,
)
