"""Pipelines that make another model in each run."""

from __future__ import annotations

import io
from contextlib import redirect_stdout

from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes import Instrument, Pipeline, PipelineError, StepResult
from passlib.workbench.graph_difference import diff


class _Run(Instrument):
    """A run of a pipeline, with the model after each step.

    Attributes
    ----------
    result : Model or None
        None if a step failed.
    stopped : str
        The step that failed, or nothing.
    """

    def __init__(self, pipeline: Pipeline, model: Model) -> None:
        self.steps: list[tuple[str, Model]] = []
        self.result: Model | None = None
        self.stopped = ""
        try:
            self.result = pipeline.run(model, [self]).model
        except PipelineError as error:
            self.stopped = error.step

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Keep a model."""
        self.steps.append((str(step), model))


def unstable_step(pipeline: Pipeline, model: Model) -> tuple[str, list[Model]]:
    """Run a pipeline twice, and find the step that makes another model, or fails only once.

    Result: a sentence about the step, or nothing, and the results of the runs that did not fail.
    """
    with redirect_stdout(io.StringIO()):  # the passes said it already
        one, two = _Run(pipeline, model), _Run(pipeline, model)
    results = [run.result for run in (one, two) if run.result is not None]
    for (name, left), (_, right) in zip(one.steps, two.steps, strict=False):
        if not diff(left, right).equal:
            return f"{name} is unstable: it makes another model in each run", results
    if one.stopped != two.stopped:
        return f"{one.stopped or two.stopped} is unstable: it fails only in some runs", results
    return "", results
