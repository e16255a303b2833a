"""Declared parameters of an operator: their types, their defaults, and whether a value fits."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

__all__ = ["Parameter", "declared", "is_true"]

# Longer numbers fit none of MXNet's types.
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}L?\s*")
_REAL = re.compile(
    r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)f?\s*", re.I
)
_TUPLE = re.compile(r"\s*[\[(]\s*((None|[+-]?\d+L?)\s*(,\s*(None|[+-]?\d+L?)\s*)*,?)?\s*[\])]\s*")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Parameter(NamedTuple):
    """One attribute that an operator declares.

    Attributes
    ----------
    name : str
    kind : str
        ``"int"``, ``"float"``, ``"boolean"``, ``"shape"``, ``"choice"`` or ``"other"``.
    choices : tuple of str
        The values of a ``"choice"``, including ``"None"`` where it may be absent.
    optional_none : bool
        Whether the text ``"None"`` is a valid value.
    required : bool
    default : str or None
        As an attribute spells it; None where the parameter is required.
    minimum : int or None
        The smallest integer that the type admits.
    type_text : str
        The declaration.
    """

    name: str
    kind: str
    choices: tuple[str, ...]
    optional_none: bool
    required: bool
    default: str | None
    minimum: int | None
    type_text: str

    def accepts(self, value: str) -> bool:
        """Whether ``value`` can be read as this parameter's type."""
        if self.optional_none and value == "None":
            return True
        if self.kind == "int":
            return bool(_INTEGER.fullmatch(value)) and (
                self.minimum is None or int(value.strip().rstrip("L")) >= self.minimum
            )
        if self.kind == "float":
            return bool(_REAL.fullmatch(value))
        if self.kind == "boolean":
            return value.lower() in _BOOLEANS
        if self.kind == "shape":
            return bool(_TUPLE.fullmatch(value)) or bool(_INTEGER.fullmatch(value))
        if self.kind == "choice":
            return value in self.choices
        return True


def is_true(value: str | None) -> bool:
    """Whether a boolean attribute is true; anything that is no boolean counts as false."""
    return value is not None and _BOOLEANS.get(value.lower(), False)


@cache
def declared(name: str, type_text: str) -> Parameter:
    """Parse a declaration such as ``"int (non-negative), optional, default=1"``."""
    default = None
    head, found, tail = type_text.partition("default=")
    if found:
        default = tail.strip().strip("'")
    choices: tuple[str, ...] = ()
    minimum = None
    if head.startswith("{"):
        kind = "choice"
        choices = tuple(c.strip().strip("'") for c in head[1 : head.rindex("}")].split(","))
    elif head.startswith(("int", "long")):
        kind = "int"
        minimum = 0 if "non-negative" in head else None
    elif head.startswith(("float", "double", "real_t")):
        kind = "float"
    elif head.startswith("boolean"):
        kind = "boolean"
    elif head.startswith("Shape"):
        kind = "shape"
    else:
        kind = "other"
    return Parameter(
        name,
        kind,
        choices,
        optional_none=kind == "shape" or "or None" in head or default == "None",
        required="required" in head,
        default=default,
        minimum=minimum,
        type_text=type_text,
    )
