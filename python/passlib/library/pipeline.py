"""Sequences of passes as data: their steps, their text, and how they are carried out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

import passlib._core as _core
from passlib.errors import PasslibError
from passlib.library.backends import find_backend, find_pipeline
from passlib.library.declared import OptionError, option_text

T = TypeVar("T")


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
        return _core.print_step(self.name, self.options)


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
        return _core.print_list(map(option_text, value))
    return str(value)


def parse(text: str) -> Steps:
    """Read a pipeline: ``removeDeadNodes, fold{level=2, axes=[0, 1]}, repeat<4>(a, b)``.

    Names and values that are no plain words stand in double quotes, as JSON strings. Raises
    `FormatError` if the text is no pipeline; the message has the place and what was expected there.
    """
    return _core.read_steps(text, Step, Repeat)


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
