"""The steps of a pipeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passlib.errors import PasslibError
from passlib.library.declared.option import option_text

BARE = re.compile(r"[A-Za-z0-9_.+:/-]+")
"""A name or a value that needs no quotes."""

_ITEM = rf'(?:{BARE.pattern}|"(?:[^"\\]|\\.)*")'

_LIST = re.compile(rf"\[(?:{_ITEM}(?:, {_ITEM})*)?\]")


@dataclass(frozen=True)
class Step:
    """One pass with its options.

    Attributes
    ----------
    name : str
    options : tuple of (str, str)
        The options as text, which the declaration of the pass converts.
    place : int or None
        Position in the text of the pipeline, from 0.
    option_places : tuple of int
        Those of the options.
    """

    name: str
    options: tuple[tuple[str, str], ...] = ()
    place: int | None = field(default=None, compare=False)
    option_places: tuple[int, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        options = ", ".join(f"{_quoted(key)}={_value(value)}" for key, value in self.options)
        return _quoted(self.name) + (f"{{{options}}}" if options else "")


@dataclass(frozen=True)
class Repeat:
    """Steps that are carried out until they change nothing, but at most ``times`` times."""

    times: int
    steps: tuple[Step | Repeat, ...]

    def __str__(self) -> str:
        return f"repeat<{self.times}>({text_of(self.steps)})"


Steps = tuple[Step | Repeat, ...]


def text_of(steps: Iterable[Step | Repeat]) -> str:
    """Return the text of steps, which `parse` reads back as equal ones."""
    return ", ".join(str(step) for step in steps)


def steps_of(item: Any) -> Steps:
    """Return the step that an item of a list stands for.

    Parameters
    ----------
    item : Step, Repeat, function or pair
        A function that `passlib.graph_pass` registered; or a name or function with a mapping of
        options.

    Raises
    ------
    TypeError
        It is something else.
    PasslibError
        A function was not registered as a pass.
    """
    if isinstance(item, (Step, Repeat)):
        return (item,)
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        options = tuple((str(key), _text(value)) for key, value in item[1].items())
        return (Step(name_of(item[0]), options),)
    return (Step(name_of(item)),)


def name_of(item: Any) -> str:
    """Return the name of a pass that is given by its name or its function; errors as above."""
    if isinstance(item, str):
        return item
    declaration = getattr(item, "declaration", None)
    name = getattr(declaration, "name", None)
    if isinstance(name, str):
        return name
    if callable(item):
        raise PasslibError(
            f"function {getattr(item, '__qualname__', item)!r} is not registered as a pass; "
            "decorate it with @passlib.graph_pass"
        )
    raise TypeError(
        "a step is the name of a pass, a function decorated with graph_pass, a pair of one of "
        f"these with a mapping of options, or a pipeline, not {item!r}"
    )


def _text(value: object) -> str:
    """Return a value as text; scalars as MXNet passes them on."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return list_of(map(option_text, value))
    return str(value)


def list_of(items: Iterable[str]) -> str:
    """Return the text of a list."""
    return "[" + ", ".join(map(_quoted, items)) + "]"


def _quoted(text: str) -> str:
    if BARE.fullmatch(text):
        return text
    # Half of a surrogate pair cannot be printed.
    halves = any("\ud800" <= character <= "\udfff" for character in text)
    return json.dumps(text, ensure_ascii=halves)


def _value(text: str) -> str:
    """Return the text of an option, in quotes unless it is a word, a number or a list."""
    return text if _is_list(text) else _quoted(text)


def _is_list(text: str) -> bool:
    """Whether a text is one that `list_of` returns."""
    if not _LIST.fullmatch(text):
        return False
    items = re.findall(_ITEM, text)
    try:
        return text == list_of(json.loads(item) if item[0] == '"' else item for item in items)
    except ValueError:
        return False
