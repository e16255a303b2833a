"""Predicates that say whether a model is wrong."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from passlib.errors import PasslibError
from passlib.model import Model
from passlib.passes import Pipeline, PipelineError
from passlib.passes.instruments import target_name
from passlib.workbench.comparison import drawn
from passlib.workbench.numbers import Tolerance, difference
from passlib.workbench.parts import outputs_of

__all__ = ["CommandFails", "Differs", "NothingFailsError", "PipelineFails"]

_SKIP = 125


class NothingFailsError(PasslibError):
    """What was to be searched for a fault has none, or is wrong from the beginning."""


class Differs:
    """Whether a model computes other numbers than a given one, or cannot be run.

    Parameters
    ----------
    reference : Model
    inputs : mapping of str to array, or sequence of these, optional
        By default one is drawn.
    tolerance : Tolerance, optional
    shapes : mapping of str to shape, optional
        Of inputs that the model does not declare, for drawing.
    """

    def __init__(
        self,
        reference: Model,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
    ) -> None:
        self.inputs = drawn(reference, inputs, 1, shapes)
        self._names = reference.outputs
        self._expected = [outputs_of(reference, each) for each in self.inputs]
        self._tolerance = tolerance or Tolerance()

    def __call__(self, model: Model) -> bool:
        """Compare a model with the reference."""
        if model.outputs != self._names:
            return True
        for each, expected in zip(self.inputs, self._expected, strict=True):
            try:
                found = outputs_of(model, each)
            except PasslibError:
                return True
            for name, one, two in zip(self._names, expected, found, strict=True):
                if not difference(name, one, two, self._tolerance).equal:
                    return True
        return False


class CommandFails:
    """Whether a shell command fails on a model's file.

    The exit status means what it means to ``git bisect run``: 0 is right, 125 cannot be tested
    and counts as right, all else is wrong; a signal too, which is the fault that is looked for.

    Parameters
    ----------
    command : str
        ``{}`` stands for the path of the file that has the graph.

    Raises
    ------
    ValueError
        The command has no ``{}``.
    """

    def __init__(self, command: str) -> None:
        if "{}" not in command:
            raise ValueError(f"{command!r} has no {{}}, which stands for the model's file")
        self._command = command

    def __call__(self, model: Model) -> bool:
        """Save a model and run the command on it."""
        with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
            files = model.save(Path(folder) / target_name(model), durable=False)
            command = self._command.replace("{}", shlex.quote(files[0]))
            status = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        code = status.returncode
        return code not in (0, _SKIP)


class PipelineFails:
    """Whether a pipeline raises an error on a model, or changes what it computes.

    Parameters
    ----------
    pipeline : Pipeline
    error : str, optional
        The kind of error, see `kind_of`; None if the numbers differ.
    tolerance : Tolerance, optional
    """

    def __init__(
        self, pipeline: Pipeline, error: str | None = None, tolerance: Tolerance | None = None
    ) -> None:
        self._pipeline = pipeline
        self._error = error
        self._tolerance = tolerance or Tolerance()

    @classmethod
    def like(
        cls, pipeline: Pipeline, model: Model, tolerance: Tolerance | None = None
    ) -> PipelineFails:
        """Return the predicate that a model fails in the way that this one does."""
        try:
            pipeline.run(model)
        except PipelineError as error:
            return cls(pipeline, kind_of(error), tolerance)
        return cls(pipeline, None, tolerance)

    def __call__(self, model: Model, inputs: Mapping[str, Any]) -> bool:
        """Run the pipeline on a model, and compare what it returns with the model."""
        try:
            after = self._pipeline.run(model).model
        except PipelineError as error:
            return self._error == kind_of(error)
        if self._error is not None:
            return False
        return Differs(model, inputs, self._tolerance)(after)


def kind_of(error: PipelineError) -> str:
    """Return what two runs of a pipeline that fail for one reason have in common."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f"{error.step}: {type(cause).__name__}"
