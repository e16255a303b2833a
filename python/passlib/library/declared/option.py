"""One option of a pass: its type, its default, and the values that it accepts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from passlib.errors import PasslibError

Kind = Literal["boolean", "integer", "real", "text"]

_ITEM = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^",][^,]*)?\s*(?:,|$)')
_TRUE = frozenset(("true", "1", "yes", "on"))
_FALSE = frozenset(("false", "0", "no", "off"))
_EXAMPLES: Mapping[Kind, str] = {
    "boolean": "true or false",
    "integer": "a whole number",
    "real": "a number",
    "text": "text",
}


class OptionError(PasslibError):
    """A pass does not have an option, lacks one, or does not accept its value.

    Attributes
    ----------
    option : str
        Its name.
    """

    def __init__(self, message: str, option: str = "") -> None:
        super().__init__(message)
        self.option = option


@dataclass(frozen=True)
class Option:
    """An option that a pass declares.

    Attributes
    ----------
    name : str
    kind : {"boolean", "integer", "real", "text"}
        Type of the value, or of each item of a list.
    default : bool, int, float, str, tuple of these, or None
        None for an option that must be given, or that is absent unless it is given.
    description : str
    choices : tuple
        The only values that are accepted, if there are any.
    low, high : int, float or None
        The smallest and the largest number that is accepted.
    is_list : bool
        Whether the value is a tuple of any length.
    required : bool

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def with_level(graph: pl.Graph, *, level: int = 1) -> None:
    ...     '''Leaves the graph as it is.'''
    >>> (option,) = with_level.declaration.options
    >>> option.name, option.kind, option.default
    ('level', 'integer', 1)
    """

    name: str
    kind: Kind
    default: Any = None
    description: str = ""
    choices: tuple[Any, ...] = ()
    low: float | None = None
    high: float | None = None
    is_list: bool = False
    required: bool = False

    @property
    def type_text(self) -> str:
        """The accepted values in words, for messages and documentation."""
        if self.choices:
            text = "one of " + ", ".join(option_text(choice) for choice in self.choices)
        else:
            text = _EXAMPLES[self.kind] + self._range_text()
        return f"a list, each item {text}" if self.is_list else text

    def _range_text(self) -> str:
        if self.low is not None and self.high is not None:
            return f" from {self.low} to {self.high}"
        if self.low is not None:
            return f" of at least {self.low}"
        return "" if self.high is None else f" of at most {self.high}"

    def checked(self, value: Any) -> Any:
        """Return a value in the option's type.

        Parameters
        ----------
        value : object
            Of the type, or its text: ``"true"``, ``"3"``, ``"[1, 2]"``.

        Raises
        ------
        OptionError
            The value has another type, or is out of range; the message says what is accepted.
        """
        if self.default is None and not self.required and self._is_none(value):
            return None
        if not self.is_list:
            return self._item(value)
        if isinstance(value, str):
            try:
                value = _items(value)
            except ValueError:
                raise self._error(value) from None
        if isinstance(value, Mapping) or not isinstance(value, (Sequence, np.ndarray)):
            raise self._error(value)
        return tuple(self._item(item) for item in value)

    def _is_none(self, value: object) -> bool:
        """Whether a value leaves an option absent; in text as Python and MXNet spell it."""
        return value is None or (
            isinstance(value, str) and value == "None" and value not in self.choices
        )

    def _item(self, value: Any) -> Any:
        converted = _CONVERSIONS[self.kind](value)
        if converted is None or (self.choices and converted not in self.choices):
            raise self._error(value)
        if self.low is not None and converted < self.low:
            raise self._error(value)
        if self.high is not None and converted > self.high:
            raise self._error(value)
        return converted

    def _error(self, value: object) -> OptionError:
        message = f"option {self.name!r} takes {self.type_text}, not {value!r}"
        return OptionError(message, self.name)

    def named(self, name: str) -> Option:
        """Return the same option under another name."""
        return replace(self, name=name)


def kind_of(value: object) -> Kind | None:
    """Return the kind of a default value, or None for one that no option can have."""
    if isinstance(value, (bool, np.bool_)):
        return "boolean"
    if isinstance(value, (int, np.integer)):
        return "integer"
    if isinstance(value, (float, np.floating)):
        return "real"
    return "text" if isinstance(value, str) else None


def option_text(value: object) -> str:
    """Return a value as pipelines spell it, and as compiled passes read it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(option_text(item) for item in value) + "]"
    return str(value)


def list_text(values: Sequence[object]) -> str:
    """Return a list as JSON, as passes with declared options read it."""
    return json.dumps(list(values), ensure_ascii=False)


def _items(text: str) -> list[str]:
    """Split the text of a list: ``[1, 2]``, ``(1, 2)`` or ``1,2``; ValueError if it is none."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("[]", "()"):
        inner = inner[1:-1]
    items = []
    place = 0
    while place < len(inner):
        found = _ITEM.match(inner, place)
        if found is None:
            raise ValueError(text)
        item = (found.group(1) or "").strip()
        if item:
            items.append(json.loads(item) if item[0] == '"' else item)
        place = found.end()
    return items


def _boolean(value: object) -> bool | None:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    return None


def _integer(value: object) -> int | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, np.integer)):
        return int(value)
    # The length is bounded, because Python's int takes quadratic time.
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]{1,30}\s*", value):
        return int(value)
    return None


def _real(value: object) -> float | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, float, np.integer, np.floating)):
        number = float(value)
    elif isinstance(value, str) and len(value) < 100:
        try:
            number = float(value)
        except ValueError:
            return None
    else:
        return None
    return None if math.isnan(number) else number


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_CONVERSIONS: Mapping[Kind, Callable[[Any], Any]] = {
    "boolean": _boolean,
    "integer": _integer,
    "real": _real,
    "text": _text,
}
