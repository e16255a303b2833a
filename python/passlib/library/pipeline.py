"""Sequences of passes as data: their steps, their text, and how they are carried out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from passlib.errors import FormatError, PasslibError
from passlib.library.backends import find_backend, find_pipeline
from passlib.library.declared import OptionError, option_text

T = TypeVar("T")

_MOST_NESTED = 100
_MOST_TIMES = 1_000_000
_SPACE = " \t\r\n"

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

    ``item``: a function that `passlib.graph_pass` registered; or a name or function with a mapping
    of options. Raises `TypeError` if it is something else; `PasslibError` if a function was not
    registered as a pass.
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


def parse(text: str) -> Steps:
    """Read a pipeline: ``removeDeadNodes, fold{level=2, axes=[0, 1]}, repeat<4>(a, b)``.

    Names and values that are no plain words stand in double quotes, as JSON strings. Raises
    `FormatError` if the text is no pipeline; the message has the place and what was expected there.
    """
    reader = _Reader(text)
    # Repeats in progress: the number of times, and the steps around them.
    open_repeats: list[tuple[int, list[Step | Repeat]]] = []
    steps: list[Step | Repeat] = []
    while True:
        if reader.takes("repeat<"):
            open_repeats.append((reader.times(), steps))
            if len(open_repeats) > _MOST_NESTED:
                raise reader.error(f"repeats nested at most {_MOST_NESTED} deep")
            steps = []
            continue
        steps.append(reader.step())
        while open_repeats and reader.takes(")"):
            times, outer = open_repeats.pop()
            outer.append(Repeat(times, tuple(steps)))
            steps = outer
        if reader.takes(","):
            continue
        if open_repeats:
            raise reader.error("',' or ')'")
        if not reader.at_end():
            raise reader.error("',' or the end")
        return tuple(steps)


class _Reader:
    """The text and a place in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0

    def error(self, expected: str) -> FormatError:
        """Return the error that something else was expected at this place."""
        found = self._text[self._place : self._place + 12]
        after = f"not {found!r}" if found else "but the text ends"
        return FormatError(
            f"pipeline {self._text!r}, character {self._place + 1}: expected {expected}, {after}",
            offset=self._place,
        )

    def at_end(self) -> bool:
        self._skip()
        return self._place == len(self._text)

    def takes(self, word: str) -> bool:
        """Move past a word if it comes next."""
        self._skip()
        if not self._text.startswith(word, self._place):
            return False
        self._place += len(word)
        return True

    def times(self) -> int:
        """Read ``4>(``."""
        place = self._place
        number = self._word("a number of times")
        if not (number.isascii() and number.isdigit() and len(number) < 8):
            self._place = place
            raise self.error("a number of times")
        if not 1 <= int(number) <= _MOST_TIMES:
            self._place = place
            raise self.error(f"a number of times from 1 to {_MOST_TIMES}")
        self._need(">")
        self._need("(")
        return int(number)

    def step(self) -> Step:
        self._skip()
        place = self._place
        name = self._word("the name of a pass")
        options: dict[str, str] = {}
        places: list[int] = []
        if self.takes("{") and not self.takes("}"):
            while True:
                self._skip()
                start = self._place
                key = self._word("the name of an option")
                if key in options:
                    self._place = start
                    raise self.error(f"another option, since {key!r} is given already")
                places.append(start)
                self._need("=")
                options[key] = self._value()
                if self.takes("}"):
                    break
                # As in MLIR, options may also be separated by space alone.
                self.takes(",")
        return Step(name, tuple(options.items()), place, tuple(places))

    def _value(self) -> str:
        self._skip()
        if not self.takes("["):
            return self._word("a value")
        items = []
        while not self.takes("]"):
            items.append(self._word("an item"))
            if not self.takes(",") and self._peek() != "]":
                raise self.error("',' or ']'")
        return list_of(items)

    def _word(self, expected: str) -> str:
        self._skip()
        if self._peek() == '"':
            try:
                word, self._place = json.JSONDecoder().raw_decode(self._text, self._place)
            except ValueError:
                raise self.error(f"{expected} as a JSON string") from None
            return str(word)
        found = BARE.match(self._text, self._place)
        if found is None:
            raise self.error(expected)
        self._place = found.end()
        return found.group()

    def _need(self, character: str) -> None:
        if not self.takes(character):
            raise self.error(repr(character))

    def _peek(self) -> str:
        self._skip()
        return self._text[self._place : self._place + 1]

    def _skip(self) -> None:
        while self._place < len(self._text) and self._text[self._place] in _SPACE:
            self._place += 1


class Observer(Protocol[T]):
    """Carries out one step, and decides whether it changed anything."""

    def apply(self, step: Step, options: dict[str, Any], subject: T) -> T:
        """Run a pass on a model or symbol and return the resulting one."""

    def differs(self, before: T, after: T) -> bool:
        """Whether a round of a repeat changed anything."""


def check(steps: Steps, text: str = "", dialect: str | None = None) -> dict[Step, dict[str, Any]]:
    """Check the name and the options of every step before anything runs.

    Result: the options of each step in their declared types. ``text``: the text that they were read
    from, for messages. ``dialect``: the family of models that they are to run on. Raises
    `PasslibError` if a pass or an option is unknown, or a value is not accepted; the message has
    the place.
    """
    checked = {}
    for step in flat(steps):
        try:
            named = find_pipeline(step.name)
            declaration = (named or find_backend(step.name)).declaration
            checked[step] = declaration.checked(dict(step.options))
            if named is not None:
                named.check(checked[step])
            if dialect is not None:
                declaration.require_dialect(dialect)
        except PasslibError as error:  # noqa: PERF203
            place = _place(step, error)
            if place is None or not text:
                raise
            raise type(error)(f"pipeline {text!r}, character {place + 1}: {error}") from None
    return checked


def _place(step: Step, error: PasslibError) -> int | None:
    """Return where a mistake stands in the text: at the option that it concerns, if it is there."""
    if isinstance(error, OptionError):
        for (name, _), place in zip(step.options, step.option_places, strict=False):
            if name == error.option:
                return place
    return step.place


def execute(
    steps: Steps, subject: T, options: dict[Step, dict[str, Any]], observer: Observer[T]
) -> T:
    """Carry out steps in order.

    ``subject``: a model or a symbol. ``options``: as `check` returned them.
    """
    for step in steps:
        if isinstance(step, Step):
            subject = observer.apply(step, options[step], subject)
            continue
        for _ in range(step.times):
            before = subject
            subject = execute(step.steps, subject, options, observer)
            if not observer.differs(before, subject):
                break
    return subject


def has_named(steps: Steps) -> bool:
    """Whether a step is a named pipeline, those of repeats included."""
    return any(find_pipeline(step.name) for step in flat(steps))


def flat(steps: Steps) -> Iterator[Step]:
    """Iterate over steps, those of repeats included."""
    pending = list(reversed(steps))
    while pending:
        step = pending.pop()
        if isinstance(step, Repeat):
            pending.extend(reversed(step.steps))
        else:
            yield step


def weights_differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a weight was added, removed or replaced by an array in other memory."""
    return before.keys() != after.keys() or any(
        old is not new
        and not (
            isinstance(old, np.ndarray)
            and isinstance(new, np.ndarray)
            and np.shares_memory(old, new)
        )
        for old, new in ((before[name], after[name]) for name in before)
    )


def shape_of_text(text: str) -> tuple[str, tuple[int | None, ...]]:
    """Return the name of an input and its shape.

    ``text``: such as ``x:1,?,4``, where ``?`` is an open size; nothing after the colon is a scalar.
    Raises `ValueError` if the text has another form.
    """
    name, colon, sizes = text.rpartition(":")
    items = [item.strip() for item in sizes.split(",")] if sizes.strip() else []
    valid = all(item == "?" or (item.isdecimal() and len(item) < 20) for item in items)
    if not (colon and name and valid):
        raise ValueError(f"{text}: write name:1,3,224,224, with ? for an open size")
    return name, tuple(None if item == "?" else int(item) for item in items)


def text_of_shapes(shapes: Mapping[str, Sequence[int | None]]) -> list[str]:
    """Return the texts of shapes by input."""
    return [
        f"{name}:{','.join('?' if size is None else str(int(size)) for size in shape)}"
        for name, shape in shapes.items()
    ]
