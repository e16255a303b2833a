"""Attribute values as MXNet and NNVM spell them: text to Python numbers, tuples and flags."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[+-]?\d+L?")
_C_SUFFIX = re.compile(r"(?<=[\d.])f$")
_LONGEST_POSITION = 12
_LONGEST_INTEGER = 1000
"""Digits; reading more takes time that grows with their square."""

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def parse_int(text: str) -> int:
    """Read a whole number; a trailing Python 2 ``L`` is accepted, as by MXNet.

    Raises
    ------
    ValueError
        The text is anything else, a real number included.
    """
    stripped = text.strip()
    if not _INTEGER.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a whole number")
    if len(stripped) > _LONGEST_INTEGER:
        raise ValueError(f"{stripped[:20]}... is a number of {len(stripped)} digits")
    return int(stripped.rstrip("L"))


def parse_position(text: str) -> int | None:
    """Read a number that counts from 0 in decimal digits; None for any other text.

    A pass may have written the text: other scripts' digits and endless numbers are none.
    """
    if len(text) >= _LONGEST_POSITION or not text.isascii() or not text.isdigit():
        return None
    return int(text)


def parse_float(text: str) -> float:
    """Read a real number, ``inf`` and ``nan`` included; C's ``f`` may follow it.

    Raises
    ------
    ValueError
        The text is no number.
    """
    return float(_C_SUFFIX.sub("", text.strip()))


def parse_bool(text: str) -> bool:
    """Read ``True``, ``true``, ``1`` and their opposites.

    Raises
    ------
    ValueError
        The text is none of these.
    """
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither True nor False") from None


def parse_optional_ints(text: str) -> tuple[int | None, ...]:
    """Read ``(1, 2)``, ``[1, 2]``, ``(1,)``, ``()`` or a lone ``1``; an element may be ``None``.

    Raises
    ------
    ValueError
        The brackets do not match, or an element is neither a whole number nor ``None``.
    """
    return tuple(None if element == "None" else parse_int(element) for element in _elements(text))


def parse_floats(text: str) -> tuple[float, ...]:
    """Read a tuple of real numbers, written like those of `parse_optional_ints`.

    Raises
    ------
    ValueError
        The brackets do not match, or an element is no number.
    """
    return tuple(parse_float(element) for element in _elements(text))


def _elements(text: str) -> list[str]:
    stripped = text.strip()
    if stripped[:1] in ("(", "["):
        closing = ")" if stripped[0] == "(" else "]"
        if stripped[-1] != closing:
            raise ValueError(f"{text!r} lacks its closing {closing!r}")
        stripped = stripped[1:-1].strip()
        if not stripped:
            return []
        stripped = stripped.removesuffix(",")
    return [element.strip() for element in stripped.split(",")]
