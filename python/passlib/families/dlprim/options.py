"""Options of operators: as JSON in files, as text in attributes of nodes, and as values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from passlib.dialects.json_text import JsonNumber, compact_json, parse_plain
from passlib.errors import FormatError
from passlib.families.dlprim.schema import OPERATORS, Option
from passlib.graph import attributes as attribute_text

_JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_PAIR = 2
_MOST_BRACKETS = 100
_INT32 = range(-(2**31), 2**31)
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


class OptionError(ValueError):
    """An option is missing or has an invalid value."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"option {option!r} {reason}")
        self.option = option


def is_hidden(key: str) -> bool:
    """Whether an attribute is one that passlib adds and no file contains."""
    return key.startswith("__") and key.endswith("__")


def is_integer(value: Any) -> bool:
    """Whether the original parser accepts a JSON value as a 32-bit integer: 3 and 3.0, not true."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) < 2.0**32 and value == int(value) and int(value) in _INT32


def is_float(value: Any) -> bool:
    """Whether the original parser accepts a JSON value as a 32-bit float: any number in range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return abs(value) <= _LARGEST_FLOAT


def attribute(name: str, option: Option | None, value: Any) -> str | None:
    """Return the attribute text of a JSON value; None if the original parser ignores the value.

    ``option`` is None if the operator does not have it. Raises `OptionError` if the original parser
    rejects the value.
    """
    if option is None:
        return value if isinstance(value, str) else _plain(value)
    if not _fits(option, value):
        if option.strict:
            raise OptionError(
                name, f"is {compact_json(value, ', ', ': ')}, but must be {_WANTED[option.kind]}"
            )
        return None
    if option.kind in ("pair", "ints") and isinstance(value, list):
        text = "[" + ", ".join(str(int(item)) for item in value) + "]"
    elif isinstance(value, str):
        text = value
    else:
        text = str(int(value)) if option.kind in ("int", "pair") else _plain(value)
    _parse(name, option, text)
    return text


def json_value(op: str, name: str, text: str) -> Any:
    """Return the JSON value of an attribute that a pass set.

    Raises `OptionError` if the operator does not accept this value.
    """
    operator = OPERATORS.get(op)
    option = operator.options.get(name) if operator is not None else None
    if option is None:
        return _any_value(text)
    value = _parse(name, option, text)
    if option.kind in ("pair", "ints"):
        alone = option.kind == "pair" and not text.strip().startswith(("(", "["))
        return value[0] if alone else list(value)
    if option.kind == "float":
        number = text.strip()
        if not is_float(value):
            raise OptionError(name, f"is {number}, which no 32-bit float can hold")
        return JsonNumber(number) if _JSON_NUMBER.fullmatch(number) else value
    return value


def read(op: str, attributes: Mapping[str, str]) -> dict[str, Any]:
    """Read all options of a known operator, defaults included.

    MXNet's spelling, such as ``True`` and ``(3, 3)``, is accepted too. Raises `OptionError` if a
    required option is missing, or an option has an invalid value.
    """
    values: dict[str, Any] = {}
    for name, option in OPERATORS[op].options.items():
        text = attributes.get(name)
        if text is not None:
            values[name] = _parse(name, option, text)
        elif option.required:
            raise OptionError(name, "is required, but missing")
        else:
            values[name] = option.default
    if op == "Reduction" and "dims" in attributes:
        if "start_axis" in attributes:
            raise OptionError("start_axis", "and 'dims' exclude each other")
        if not values["dims"]:
            raise OptionError("dims", "must be a list of at least one axis")
    return values


def _fits(option: Option, value: Any) -> bool:
    if option.kind == "bool":
        return isinstance(value, bool)
    if option.kind == "string":
        return isinstance(value, str)
    if option.kind == "int":
        return is_integer(value)
    if option.kind == "float":
        return is_float(value)
    if option.kind == "pair" and is_integer(value):
        return True
    whole = isinstance(value, list) and all(is_integer(item) for item in value)
    return whole and (option.kind == "ints" or len(value) == _PAIR)


def _parse(name: str, option: Option, text: str) -> Any:
    try:
        if option.kind == "bool":
            return attribute_text.parse_bool(text)
        if option.kind == "float":
            return attribute_text.parse_float(text)
        if option.kind == "int":
            return attribute_text.parse_int(text)
        if option.kind in ("pair", "ints"):
            return _whole(option, text)
    except ValueError as error:
        raise OptionError(name, f"is {text!r}, but must be {_WANTED[option.kind]}") from error
    if option.choices and text not in option.choices:
        raise OptionError(name, f"is {text!r}, but must be one of {', '.join(option.choices)}")
    return text


def _whole(option: Option, text: str) -> tuple[int, ...]:
    items = attribute_text.parse_optional_ints(text)
    found = tuple(item for item in items if item is not None)
    if len(found) != len(items):
        raise ValueError(text)
    if option.kind == "ints":
        return found
    if len(found) == 1 and not text.strip().startswith(("(", "[")):
        found *= _PAIR
    if len(found) != _PAIR:
        raise ValueError(text)
    return found


_WANTED = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "string": "a string",
    "pair": "an integer or a list of two, height and width",
    "ints": "a list of integers",
}


def _plain(value: Any) -> str:
    return compact_json(value, ", ", ": ")


def _any_value(text: str) -> Any:
    """Read an option that the operator does not have, as JSON if possible, otherwise as text."""
    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        return text
    try:
        value = parse_plain(text)
    except FormatError:
        return text
    return text if isinstance(value, str) else value
