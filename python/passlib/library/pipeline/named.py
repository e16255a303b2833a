"""Pipelines with a name of their own, which may stand wherever a pass may."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from passlib.errors import PasslibError
from passlib.library.backends import PIPELINES, find_standard, passes
from passlib.library.declared import Declaration, Option
from passlib.library.declared.option import OptionError
from passlib.library.pipeline.cost import COSTS
from passlib.library.pipeline.sizes import shape_of_text
from passlib.library.pipeline.steps import Repeat, Step, Steps, steps_of

_GROWTH: Final = "how many bytes the weights may grow by; by default a hundredth, at most 1 MB"

_OPTIONS: Final = (
    Option("fixed", "text", (), "sizes of inputs, such as x:1,3,224,224", is_list=True),
    Option("skip", "text", (), "standard passes that are left out", is_list=True),
    Option("cost", "text", "nodes", "what has to fall for a step to be kept", COSTS),
    Option("max_growth", "integer", None, _GROWTH, low=0),
    Option("max_rounds", "integer", 16, "how often the passes run at most", low=1),
)

_NAMED: Final = {
    name: Declaration(name, description, (), _OPTIONS)
    for name, description in zip(
        PIPELINES,
        (
            "Runs the standard passes until the cost falls no more.",
            "As simplify, with those passes only that keep every bit.",
        ),
        strict=True,
    )
}


def find_named(name: str) -> Declaration | None:
    """Return what a named pipeline declares; None if there is none, or a pass has its name."""
    return _NAMED.get(name) if name in _NAMED and name not in passes() else None


def named_pipelines() -> list[Declaration]:
    """Return what the named pipelines declare; without those whose name a pass has."""
    known = passes()
    return [declaration for name, declaration in _NAMED.items() if name not in known]


def has_named(steps: Steps) -> bool:
    """Whether a step is a named pipeline, those of repeats included."""
    pending = list(steps)
    while pending:
        step = pending.pop()
        if isinstance(step, Repeat):
            pending.extend(step.steps)
        elif find_named(step.name):
            return True
    return False


def is_standard(name: str) -> bool:
    """Whether a pass of this name comes with passlib."""
    try:
        find_standard(name)
    except PasslibError:
        return False
    return True


def check_skipped(names: Collection[str]) -> None:
    """Check that what an option ``skip`` names are standard passes.

    Raises
    ------
    OptionError
        One is not.
    """
    for name in names:
        if not is_standard(name):
            raise OptionError(f"option 'skip': there is no standard pass {name!r}", "skip")


def simplify_arguments(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `passlib.simplify` that a named pipeline stands for.

    Raises
    ------
    OptionError
        An item of ``fixed`` is no shape of an input.
    """
    try:
        fixed = dict(shape_of_text(text) for text in options.get("fixed", ()))
    except ValueError as error:
        raise OptionError(f"option 'fixed': {error}", "fixed") from None
    return {**options, "fixed": fixed, "exact": name == "clean"}


def skipping(step: Step, names: list[str]) -> Step:
    """Return a step for a named pipeline that leaves more passes out.

    Parameters
    ----------
    step : Step
    names : list of str
        Standard passes.
    """
    declaration = _NAMED[step.name]
    options: dict[str, Any] = dict(step.options)
    before = declaration.checked(options).get("skip", ())
    options["skip"] = list(dict.fromkeys((*before, *names)))
    (made,) = steps_of((step.name, options))
    assert isinstance(made, Step)
    return replace(made, place=step.place)
