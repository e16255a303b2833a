"""The models that a pipeline goes through."""

from __future__ import annotations

from typing import NamedTuple

from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes import Instrument, StepResult
from passlib.passes.isolation import IsolatedError


class State(NamedTuple):
    """What one step did.

    Attributes
    ----------
    number : int
        Its place among the steps that ran, from 1.
    name, text : str
        The pass, and the step with its options.
    before, after : Model
    """

    number: int
    name: str
    text: str
    before: Model
    after: Model


class Trace(Instrument):
    """Keeps the models of the steps that changed something.

    Parameters
    ----------
    fatal : IsolatedError, optional
        Of the pipeline in a process of its own: the step that ended it raises this instead.

    Attributes
    ----------
    states : list of State
    count : int
        How many steps began.
    """

    def __init__(self, fatal: IsolatedError | None = None) -> None:
        self._fatal = fatal
        self.states: list[State] = []
        self.count = 0
        self._before: Model | None = None

    def before_pass(self, step: Step, model: Model) -> None:
        """Keep the model that a step is about to get.

        Raises
        ------
        IsolatedError
            The step is the one that ended its process.
        """
        self._before = model
        self.count += 1
        if self._fatal is not None and self.count == self._fatal.number:
            raise self._fatal

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Keep what a step made of it, if that differs."""
        if result.modified and self._before is not None:
            self.states.append(State(self.count, step.name, result.text, self._before, model))

    def chain(self, last: Model) -> list[State]:
        """Return the states that led to a model: a pipeline may try steps and drop their results.

        Parameters
        ----------
        last : Model
            The result of the pipeline.
        """
        found: list[State] = []
        wanted = last
        for state in reversed(self.states):
            if not found or state.after.symbol.graph.equals(wanted.symbol.graph):
                found.append(state)
                wanted = state.before
        return found[::-1]
