"""Typed access to the attributes of a node."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

import numpy as np

from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require
from passlib.graph.node import Node

_INTEGER = re.compile(r"[+-]?\d+L?")
_C_SUFFIX = re.compile(r"(?<=[\d.])f$")
_LONGEST_POSITION = 12
_LONGEST_INTEGER = 1000
"""Digits; reading more takes time that grows with their square."""

_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def parse_int(text: str) -> int:
    """Read a whole number; a trailing Python 2 ``L`` is accepted, as by MXNet.

    Raises `ValueError` if the text is anything else, a real number included.
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

    Raises `ValueError` for other text.
    """
    return float(_C_SUFFIX.sub("", text.strip()))


def parse_bool(text: str) -> bool:
    """Read ``True``, ``true``, ``1`` and their opposites; raise `ValueError` for other text."""
    try:
        return _FLAGS[text.strip().lower()]
    except KeyError:
        raise ValueError(f"{text!r} is neither True nor False") from None


def parse_optional_ints(text: str) -> tuple[int | None, ...]:
    """Read ``(1, 2)``, ``[1, 2]``, ``(1,)``, ``()`` or a lone ``1``; an element may be ``None``.

    Raises `ValueError` if the brackets do not match, or an element is neither a whole number nor
    ``None``.
    """
    return tuple(None if element == "None" else parse_int(element) for element in _elements(text))


def parse_floats(text: str) -> tuple[float, ...]:
    """Read a tuple of real numbers, written like those of `parse_optional_ints`."""
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


_T = TypeVar("_T")
_REQUIRED: Any = object()
_LEAST: Final = -(2**63)


def blame(node: Node) -> str:
    """Return how error messages name a node."""
    return f"node {node.name!r} ({node.op})"


class Attributes:
    """Typed readers of a node's attributes; ``overriding`` has values that replace the node's own.

    The readers (`int`, `ints`, ...) return ``default`` where the attribute is absent, raise where
    it is absent and no default was given, and raise `UnsupportedError` naming node, operator,
    attribute and value where the text cannot be read.
    """

    def __init__(self, node: Node, overriding: Mapping[str, str] | None = None) -> None:
        self.node = node
        self._texts: Mapping[str, str] = {**node.attrs, **overriding} if overriding else node.attrs

    def attr(self, name: str, default: str | None = None) -> str | None:
        """Raw text of an attribute."""
        return self._texts.get(name, default)

    def int(self, name: str, default: builtins.int = _REQUIRED) -> builtins.int:
        """Whole number of at most 64 bits, as in all that follows."""
        return self._read(name, default, _integer)

    def optional_int(self, name: str, default: builtins.int | None = None) -> builtins.int | None:
        """Whole number, or ``None`` for the text ``None``."""
        return self._read(name, default, _or_none(_integer))

    def float(self, name: str, default: builtins.float = _REQUIRED) -> builtins.float:
        """Real number."""
        return self._read(name, default, parse_float)

    def optional_float(
        self, name: str, default: builtins.float | None = None
    ) -> builtins.float | None:
        """Real number, or ``None`` for the text ``None``."""
        return self._read(name, default, _or_none(parse_float))

    def bool(self, name: str, default: builtins.bool = _REQUIRED) -> builtins.bool:
        """Flag."""
        return self._read(name, default, parse_bool)

    def ints(
        self, name: str, default: tuple[builtins.int, ...] = _REQUIRED
    ) -> tuple[builtins.int, ...]:
        """Tuple of whole numbers; a lone number is a tuple of one."""
        return self._read(name, default, _whole)

    def floats(
        self, name: str, default: tuple[builtins.float, ...] = _REQUIRED
    ) -> tuple[builtins.float, ...]:
        """Tuple of real numbers; a lone number is a tuple of one."""
        return self._read(name, default, parse_floats)

    def optional_ints(
        self, name: str, default: tuple[builtins.int | None, ...] | None = None
    ) -> tuple[builtins.int | None, ...] | None:
        """Tuple of whole numbers whose elements may be ``None``; ``None`` for the text ``None``."""
        return self._read(name, default, _or_none(_integers))

    def string(
        self, name: str, default: str = _REQUIRED, choices: Sequence[str] | None = None
    ) -> str:
        """Text, one of ``choices`` if these are given."""
        text = self._read(name, default, str)
        if choices is not None and text not in choices:
            self.unsupported(f"is none of {', '.join(choices)}", name)
        return text

    def dtype(self, name: str, default: np.dtype | None = _REQUIRED) -> np.dtype | None:
        """Element type by its name; ``default`` for the text ``None``."""
        if self._texts.get(name) == "None":
            return default
        return self._read(name, default, _dtype)

    def unsupported(self, reason: str, attribute: str | None = None) -> NoReturn:
        """Refuse what passlib cannot do, naming the node, the operator and the attribute."""
        raise UnsupportedError(f"{self._place(attribute)}: {reason}")

    def invalid(self, reason: str, attribute: str | None = None) -> NoReturn:
        """Refuse what the operator does not define, as `unsupported` does, with a GraphError.

        Inference raises it too, where it takes an `UnsupportedError` for an unknown result.
        """
        raise GraphError(f"{self._place(attribute)}: {reason}")

    def _place(self, attribute: str | None) -> str:
        where = blame(self.node)
        if attribute is None:
            return where
        text = self._texts.get(attribute)
        value = "absent" if text is None else f"with value {text!r}"
        return f"{where}: attribute {attribute!r} ({value})"

    def _read(self, name: str, default: _T, parse: Callable[[str], _T]) -> _T:
        text = self._texts.get(name)
        if text is None:
            if default is _REQUIRED:
                self.unsupported("is required", name)
            return default
        try:
            return parse(text)
        except (ValueError, TypeError) as error:
            self.unsupported(str(error), name)


def _or_none(parse: Callable[[str], _T]) -> Callable[[str], _T | None]:
    return lambda text: None if text.strip() == "None" else parse(text)


def _integer(text: str) -> int:
    number = parse_int(text)
    if not _LEAST <= number <= -_LEAST - 1:
        raise ValueError(f"{text!r} exceeds 64 bits")
    return number


def _integers(text: str) -> tuple[int | None, ...]:
    elements = parse_optional_ints(text)
    if not all(element is None or _LEAST <= element <= -_LEAST - 1 for element in elements):
        raise ValueError(f"{text!r} has a number that exceeds 64 bits")
    return elements


def _whole(text: str) -> tuple[int, ...]:
    elements = _integers(text)
    if None in elements:
        raise ValueError(f"{text!r} has an element None")
    return tuple(element for element in elements if element is not None)


def _dtype(text: str) -> np.dtype:
    if text == "bfloat16":
        bfloat16: type[Any] = require("ml_dtypes", extra="onnx").bfloat16
        return np.dtype(bfloat16)
    return np.dtype(text)
