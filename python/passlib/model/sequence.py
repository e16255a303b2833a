"""Several passes in one call of ``optimize_for``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from passlib.arrays.views import read_only
from passlib.errors import PasslibError, UnsupportedError
from passlib.library import backends
from passlib.library.pipeline import (
    Repeat,
    Step,
    Steps,
    check,
    execute,
    has_named,
    parse,
    steps_of,
    weights_differ,
)

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
        if is_name and not backends.find_pipeline(backend):
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


class _State(NamedTuple):
    """A symbol with args and aux."""

    symbol: Any
    weights: tuple[dict[str, Any] | None, ...]


class _Observer:
    """Runs steps on symbols by a function of `run_steps`."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def apply(self, step: Step, options: dict[str, Any], subject: _State) -> _State:
        weights = tuple(None if given is None else dict(given) for given in subject.weights)
        return _State(self._run(subject.symbol, step.name, *weights, chosen=options), weights)

    def differs(self, before: _State, after: _State) -> bool:
        return not before.symbol.graph.equals(after.symbol.graph) or any(
            weights_differ(old or {}, new or {})
            for old, new in zip(before.weights, after.weights, strict=True)
        )


def run_steps(
    symbol: _S,
    steps: Steps,
    text: Any,
    weights: tuple[MutableMapping[str, Any] | list[Any] | None, ...],
    run: Callable[..., _S],
) -> _S:
    """Run passes in order.

    Parameters
    ----------
    symbol : ModelGraph
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
    TypeError
        args or aux is a list.
    """
    if has_named(steps):
        raise UnsupportedError(
            "simplify and clean work on models: passlib.Model(symbol, args, aux).optimize_for(...)"
        )
    options = check(steps, text if isinstance(text, str) else "", symbol.dialect)
    # What a pass writes into memory that it was lent would not be seen by a repeat.
    watched = any(isinstance(step, Repeat) for step in steps)
    held = tuple(
        None if given is None else {n: _shown(a, watched) for n, a in given.items()}
        for given in map(_dictionary, weights)
    )
    result = execute(steps, _State(symbol, held), options, _Observer(run))
    for given, before, after in zip(map(_dictionary, weights), held, result.weights, strict=True):
        if given is not None and before is not None and after is not None:
            _commit(given, before, after)
    made: _S = result.symbol
    return made


def _dictionary(
    given: MutableMapping[str, Any] | list[Any] | None,
) -> MutableMapping[str, Any] | None:
    if isinstance(given, list):
        raise TypeError("args and aux of several passes must be dictionaries of arrays by name")
    return given


def _shown(array: Any, watched: bool) -> Any:
    return read_only(array) if watched and isinstance(array, np.ndarray) else array


def _commit(
    given: MutableMapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    """Bring the caller's dictionary up to date, arrays of the same kind in their memory."""
    for name in given.keys() - after.keys():
        del given[name]
    for name, array in after.items():
        if name in before and array is before[name]:
            continue
        own = given.get(name)
        if (
            isinstance(own, np.ndarray)
            and own.flags.writeable
            and (own.shape, own.dtype) == (array.shape, array.dtype)
        ):
            own[...] = array
        else:
            given[name] = array


def refuse_options(options: dict[str, Any]) -> None:
    """Raise if options are given next to a pipeline, which has its own."""
    if options:
        raise PasslibError(
            f"option {next(iter(options))!r} was given next to a pipeline; options of a pass "
            "stand after its name: 'first, second{level=2}'"
        )
