"""Several passes in one call of ``optimize_for``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, TypeVar

import passlib._core as _core
from passlib.errors import PasslibError, UnsupportedError
from passlib.library import backends
from passlib.library.pipeline import Step, Steps, check, execute, parse, steps_of
from passlib.library.pipeline.named import find_named, has_named

__all__ = ["as_steps", "refuse_options", "run_steps"]

_S = TypeVar("_S", bound=Any)

_PUNCTUATION = frozenset(",{<(")
"""What tells the text of a pipeline from the misspelled name of a pass."""


def as_steps(backend: Any) -> Steps | None:
    """Return the steps that an argument of ``optimize_for`` stands for.

    Parameters
    ----------
    backend : str, Pipeline, list or tuple
        The name of a pass, the text of a pipeline where no pass has that name, a pipeline, or a
        list of what `passlib.Pipeline` takes.

    Returns
    -------
    tuple of Step or Repeat, or None
        None for a single name.

    Raises
    ------
    FormatError
        The text is no pipeline.
    TypeError
        An item of the list is no step.
    """
    if isinstance(backend, str):
        is_name = not _PUNCTUATION.intersection(backend) or backend in backends.passes()
        if is_name and not find_named(backend):
            return None
        return parse(backend)
    if isinstance(backend, tuple) and len(backend) == 2 and isinstance(backend[1], Mapping):
        return steps_of(backend)
    if isinstance(backend, (list, tuple)):
        return tuple(step for item in backend for step in as_steps(item) or steps_of(item))
    steps = getattr(backend, "steps", None)
    if isinstance(steps, tuple):
        return steps
    return steps_of(backend) if callable(backend) else None


class _Observer:
    """Runs steps on symbols by a function of the symbol, the name of the pass and its options."""

    def __init__(self, run: Callable[[Any, str, dict[str, Any]], Any]) -> None:
        self._run = run

    def apply(self, step: Step, options: dict[str, Any], subject: Any) -> Any:
        return self._run(subject, step.name, options)

    def differs(self, before: Any, after: Any) -> bool:
        old: _core.Graph = before.graph
        return not old.equals(after.graph)


def run_steps(
    symbol: _S,
    steps: Steps,
    text: Any,
    weights: tuple[MutableMapping[str, Any] | None, MutableMapping[str, Any] | None],
    run: Callable[..., _S],
) -> _S:
    """Run passes in order.

    Parameters
    ----------
    symbol : Symbol
    steps : tuple of Step or Repeat
    text : object
        What the caller gave, for messages.
    weights : pair of mutable mappings
        args and aux, which change when all passes have succeeded.
    run : callable
        Gets a symbol, the name of a pass, args, aux and the options, and returns a symbol.

    Raises
    ------
    PasslibError
        A pass or an option is unknown, before anything runs; or a pass failed.
    UnsupportedError
        A step is a named pipeline, which needs a model.
    """
    if has_named(steps):
        raise UnsupportedError(
            "simplify and clean work on models: passlib.Model(symbol, args, aux).optimize_for(...)"
        )
    options = check(steps, text if isinstance(text, str) else "", symbol.dialect)
    held = [None if given is None else dict(given) for given in weights]

    def step(subject: _S, name: str, chosen: dict[str, Any]) -> _S:
        return run(subject, name, *held, chosen=chosen)

    result: _S = execute(steps, symbol, options, _Observer(step))
    for given, changed in zip(weights, held, strict=True):
        if given is not None and changed is not None:
            for name in given.keys() - changed.keys():
                del given[name]
            given.update(changed)
    return result


def refuse_options(options: dict[str, Any]) -> None:
    """Raise if options are given next to a pipeline, which has its own."""
    if options:
        raise PasslibError(
            f"option {next(iter(options))!r} was given next to a pipeline; options of a pass "
            "stand after its name: 'first, second{level=2}'"
        )
