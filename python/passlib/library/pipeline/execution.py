"""Carrying out the steps of a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import numpy as np

from passlib.errors import PasslibError
from passlib.library.backends import find_backend
from passlib.library.declared.option import OptionError
from passlib.library.pipeline.named import check_skipped, find_named
from passlib.library.pipeline.steps import Repeat, Step, Steps

T = TypeVar("T")


class Observer(Protocol[T]):
    """Carries out one step, and decides whether it changed anything."""

    def apply(self, step: Step, options: dict[str, Any], subject: T) -> T:
        """Run a pass on a model or symbol and return the resulting one."""

    def differs(self, before: T, after: T) -> bool:
        """Whether a round of a repeat changed anything."""


def check(steps: Steps, text: str = "", dialect: str | None = None) -> dict[Step, dict[str, Any]]:
    """Check the name and the options of every step before anything runs.

    Parameters
    ----------
    steps : tuple of Step or Repeat
    text : str, optional
        The text that they were read from, for messages.
    dialect : str, optional
        The family of models that they are to run on.

    Returns
    -------
    dict of Step to dict
        The options of each step in their declared types.

    Raises
    ------
    PasslibError
        A pass or an option is unknown, or a value is not accepted; the message has the place.
    """
    checked = {}
    pending: list[Step | Repeat] = list(reversed(steps))
    while pending:
        step = pending.pop()
        if isinstance(step, Repeat):
            pending.extend(reversed(step.steps))
            continue
        try:
            named = find_named(step.name)
            declaration = named or find_backend(step.name).declaration
            checked[step] = declaration.checked(dict(step.options))
            if named is not None:
                check_skipped(checked[step].get("skip", ()))
            if dialect is not None:
                declaration.require_dialect(dialect)
        except PasslibError as error:
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

    Parameters
    ----------
    steps : tuple of Step or Repeat
    subject : T
        A model or a symbol.
    options : dict of Step to dict
        As `check` returned them.
    observer : Observer

    Returns
    -------
    T
        The last result.
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


def weights_differ(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a weight was added, removed or replaced by an array in memory of its own."""
    return before.keys() != after.keys() or any(
        before[name] is not after[name] and not _share_memory(before[name], after[name])
        for name in before
    )


def _share_memory(one: Any, other: Any) -> bool:
    dense = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return dense and np.shares_memory(one, other)
