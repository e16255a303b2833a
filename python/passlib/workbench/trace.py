"""The models that a pipeline goes through, and pipelines that keep only the first rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from passlib.errors import GraphError
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes import Instrument, Pipeline, PipelineResult, StepResult
from passlib.passes.isolation import IsolatedError
from passlib.workbench.rewrites import Rewriting


class State(NamedTuple):
    """The effect of one step.

    Attributes
    ----------
    number : int
        Number of the step, from 1.
    name, text : str
        The pass, and the step with its options.
    """

    number: int
    name: str
    text: str
    before: Model
    after: Model


class Trace(Instrument):
    """An instrument that keeps the models of steps that changed something.

    Parameters
    ----------
    fatal : IsolatedError, optional
        Error of the isolated pipeline, raised instead of running its step.

    Attributes
    ----------
    count : int
        Number of started steps.
    """

    def __init__(self, fatal: IsolatedError | None = None) -> None:
        self._fatal = fatal
        self.states: list[State] = []
        self.count = 0
        self._before: Model | None = None

    def before_pass(self, step: Step, model: Model) -> None:
        """Keep the input of a step.

        Raises
        ------
        IsolatedError
            The step ended the isolated process.
        """
        self._before = model
        self.count += 1
        if self._fatal is not None and self.count == self._fatal.number:
            raise self._fatal

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Keep the result of a step if it differs."""
        if result.modified and self._before is not None:
            self.states.append(State(self.count, step.name, result.text, self._before, model))

    def chain(self, last: Model) -> list[State]:
        """Return the states that led to the result; pipelines may drop results of steps."""
        found: list[State] = []
        wanted = last
        for state in reversed(self.states):
            if not found or state.after.symbol.graph.equals(wanted.symbol.graph):
                found.append(state)
                wanted = state.before
        return found[::-1]


def run_limited(
    model: Model, pipeline: Pipeline, limit: int, instruments: Sequence[Instrument] = ()
) -> tuple[PipelineResult, int, int]:
    """Run a pipeline and keep only the first ``limit`` rewrites of its steps.

    Fewer are kept if the first rewrites of a step alone do not make a sound graph.

    Parameters
    ----------
    instruments : sequence of Instrument
        Observe the whole pipeline.

    Returns
    -------
    PipelineResult, int, int
        The result with the steps up to the last kept rewrite; the numbers of kept rewrites and of
        all rewrites.
    """
    trace = Trace()
    result = pipeline.run(model, [trace, *instruments])
    kept, count, last, steps = 0, 0, model, 0
    is_open = True
    for state in trace.chain(result.model):
        rewriting = Rewriting(state.before, state.after)
        made = len(rewriting.rewrites)
        count += made
        if is_open and kept + made <= limit:
            kept, last, steps = kept + made, state.after, state.number
        elif is_open:
            is_open = False
            most = limit - kept
            fitting = next((n for n in range(most, 0, -1) if _is_sound(rewriting, n)), 0)
            if fitting:
                last, steps = rewriting.with_only(rewriting.rewrites[:fitting]), state.number
                kept += fitting
    return PipelineResult(last, result.steps[:steps], model), kept, count


def _is_sound(rewriting: Rewriting, count: int) -> bool:
    try:
        rewriting.with_only(rewriting.rewrites[:count])
    except GraphError:
        return False
    return True
