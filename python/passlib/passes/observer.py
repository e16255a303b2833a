"""Steps of a pipeline on a model, with instruments that look on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from passlib.errors import PassError, PipelineError
from passlib.library.call import Backend
from passlib.library.output import recorded
from passlib.library.pipeline import Step
from passlib.library.pipeline.named import find_named, simplify_arguments
from passlib.model import Model
from passlib.passes.instruments import Instrument
from passlib.passes.result import StepResult
from passlib.passes.simplifying import simplify_watched

__all__ = ["ModelObserver"]


class ModelObserver:
    """Runs steps on models and records what they did.

    Parameters
    ----------
    instruments : sequence of Instrument
    inference : mapping
        Passed on to `Model.optimize_for`.

    Attributes
    ----------
    results : list of StepResult
    """

    def __init__(self, instruments: Sequence[Instrument], inference: Mapping[str, Any]) -> None:
        self._instruments = instruments
        self._inference = inference
        self.results: list[StepResult] = []

    def apply(self, step: Step, options: dict[str, Any], subject: Model) -> Model:
        """Run one step, a pass or a named pipeline.

        Raises
        ------
        PipelineError
            It failed, or an instrument refused the result.
        """
        if find_named(step.name):
            return simplify_watched(subject, self, **simplify_arguments(step.name, options))
        return self.run_backend(step, options, subject, step.name)

    def run_backend(
        self, step: Step, options: Mapping[str, Any], subject: Model, backend: str | Backend
    ) -> Model:
        """Run one pass.

        Raises
        ------
        PipelineError
            It failed, or an instrument refused the result.
        """
        given = {**self._inference, **options}
        return self.watch(step, subject, lambda: subject.optimize_for(backend, **given))

    def watch(self, step: Step, subject: Model, run: Callable[[], Model]) -> Model:
        """Run what counts as one step, however it makes the model.

        Raises
        ------
        PipelineError
            It failed, or an instrument refused the result.
        """
        try:
            for instrument in self._instruments:
                instrument.before_pass(step, subject)
            with recorded() as printed:
                start = time.perf_counter()
                after = run()
                seconds = time.perf_counter() - start
            result = _result(step, subject, after, seconds, "".join(printed))
            for instrument in self._instruments:
                instrument.after_pass(step, after, result)
        except Exception as error:
            for instrument in self._instruments:
                instrument.failed(step, subject, error)
            number = len(self.results) + 1
            raise PipelineError(
                f"step {number} of the pipeline, {step}, failed: {error}",
                step=str(step),
                model=subject,
                messages=error.messages if isinstance(error, PassError) else (),
            ) from error
        self.results.append(result)
        return after

    def differs(self, before: Model, after: Model) -> bool:
        """Whether the graph or a weight changed."""
        return not before.symbol.graph.equals(after.symbol.graph) or _weights_differ(before, after)


def _result(step: Step, before: Model, after: Model, seconds: float, printed: str) -> StepResult:
    old, new = before.symbol.graph, after.symbol.graph
    same = old.equals(new)
    changed = 0 if same else sum(map(len, old.difference(new)))
    return StepResult(
        step.name,
        str(step),
        seconds,
        len(old),
        len(new),
        changed,
        not same or _weights_differ(before, after),
        tuple(printed.splitlines()),
    )


def _weights_differ(before: Model, after: Model) -> bool:
    """Whether a weight was added, removed or replaced; `optimize_for` shares the others."""
    for old, new in ((before.args, after.args), (before.aux, after.aux)):
        if old.keys() != new.keys():
            return True
        for name in old:
            if old[name] is not new[name] and not np.shares_memory(old[name], new[name]):
                return True
    return False
