"""Declared parameters of an operator: their types, their defaults, and whether a value fits."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Final, NamedTuple, TypeAlias

Bounds: TypeAlias = "tuple[float | None, float | None]"
"""The least and the largest value that an operator admits, None without such a limit."""

UNBOUNDED: Final[Bounds] = (None, None)

# Longer numbers fit none of MXNet's types.
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}\s*")
_OPTIONAL_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,20}L?\s*")
_REAL = re.compile(
    r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)f?", re.I
)
_SIZE = r"(None|[+-]?\d{1,20}L?)"
_TUPLE = re.compile(rf"\s*[\[(]\s*({_SIZE}\s*(,\s*{_SIZE}\s*)*,?)?\s*[\])]\s*")
_NUMBER = r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?L?\s*"
_NUMBERS = re.compile(rf"\s*[\[(]({_NUMBER}(,{_NUMBER})*,?)?\s*[\])]\s*|{_NUMBER}")
_LIMITS = {"int": (-(2**31), 2**31 - 1), "long": (-(2**63), 2**63 - 1)}
_UNSIGNED_LIMITS = {"int": (0, 2**32 - 1), "long": (0, 2**64 - 1)}
_LARGEST_FLOAT = 3.4028235e38
_KINDS = {
    "float": "float",
    "real_t": "float",
    "double": "double",
    "boolean": "boolean",
    "Shape(tuple)": "shape",
    "Shape": "shape",
    "tuple": "numbers",
}
"""The kinds of other types, by the first word of the declaration."""

_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


class Parameter(NamedTuple):
    """One attribute that an operator declares.

    Attributes
    ----------
    name : str
    kind : str
        ``"int"``, ``"float"``, ``"double"``, ``"boolean"``, ``"shape"``, ``"numbers"``,
        ``"choice"`` or ``"other"``.
    choices : tuple of str
        The values of a ``"choice"``, including ``"None"`` where it may be absent.
    optional_none : bool
        Whether the text ``"None"`` is a valid value.
    required : bool
    default : str or None
        As an attribute spells it; None where the parameter is required.
    limits : tuple of int or None
        The smallest and the largest integer that the type admits.
    type_text : str
        The declaration.
    bounds : tuple of (float or None)
        The least and the largest value that the operator admits.
    """

    name: str
    kind: str
    choices: tuple[str, ...]
    optional_none: bool
    required: bool
    default: str | None
    limits: tuple[int, int] | None
    type_text: str
    bounds: Bounds = UNBOUNDED

    def accepts(self, value: str) -> bool:
        """Whether ``value`` can be read as this parameter's type, and is within its bounds."""
        return self._has_type(value) and (self.bounds == UNBOUNDED or self._is_within(value))

    @property
    def description(self) -> str:
        """The declaration, with the bounds."""
        least, most = self.bounds
        if least is None and most is None:
            return self.type_text
        limit = f"at most {most}" if least is None else f"at least {least}"
        limit = limit if None in self.bounds else f"from {least} to {most}"
        return f"{self.type_text}, {limit}"

    def _has_type(self, value: str) -> bool:
        if self.optional_none and value == "None":
            return True
        if self.limits is not None:
            least, most = self.limits
            fits = (_OPTIONAL_INTEGER if self.optional_none else _INTEGER).fullmatch(value)
            return bool(fits) and least <= int(value.strip().rstrip("L")) <= most
        if self.kind in ("float", "double"):
            return self._accepts_real(value)
        if self.kind == "boolean":
            return value.lower() in _BOOLEANS
        if self.kind == "shape":
            return bool(_TUPLE.fullmatch(value)) or bool(_INTEGER.fullmatch(value))
        if self.kind == "numbers":
            return bool(_NUMBERS.fullmatch(value))
        if self.kind == "choice":
            return value in self.choices
        return True

    def _is_within(self, value: str) -> bool:
        least, most = self.bounds
        if self.kind == "shape":
            sizes = [int(size) for size in re.findall(r"[+-]?\d+", value)]
            return least is None or all(size >= least for size in sizes)
        text = value.strip()
        number = float(text.rstrip("fFL") if text[-1:] in "fFL" and text[-2:-1].isdigit() else text)
        return not ((least is not None and number < least) or (most is not None and number > most))

    def _accepts_real(self, value: str) -> bool:
        if not _REAL.fullmatch(value):
            return False
        if not any(character.isdigit() for character in value):
            return not self.optional_none  # infinity, or no number
        most = math.inf if self.kind == "double" else _LARGEST_FLOAT
        number = abs(float(value.rstrip("fF")))
        return number <= most and number != math.inf


def is_true(value: str | None) -> bool:
    """Whether a boolean attribute is true; anything that is no boolean counts as false."""
    return value is not None and _BOOLEANS.get(value.lower(), False)


@cache
def declared(name: str, type_text: str, bounds: Bounds = UNBOUNDED) -> Parameter:
    """Parse a declaration such as ``"int (non-negative), optional, default=1"``."""
    default = None
    head, found, tail = type_text.partition("default=")
    if found:
        default = tail.strip().strip("'")
    choices: tuple[str, ...] = ()
    limits = None
    word = head.split(" ")[0].rstrip(",")
    if head.startswith("{"):
        kind = "choice"
        choices = tuple(c.strip().strip("'") for c in head[1 : head.rindex("}")].split(","))
    elif word in _LIMITS:
        kind = "int"
        limits = (_UNSIGNED_LIMITS if "non-negative" in head else _LIMITS)[word]
    elif head.startswith("tuple of <Shape"):
        kind = "other"
    else:
        kind = _KINDS.get(word, "other")
    return Parameter(
        name,
        kind,
        choices,
        optional_none=kind in ("shape", "numbers") or "or None" in head or default == "None",
        required="required" in head,
        default=default,
        limits=limits,
        type_text=type_text,
        bounds=bounds,
    )
