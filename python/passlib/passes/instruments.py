"""Instruments, which observe pipelines: timing, dumps, logs and checks."""

from __future__ import annotations

import logging
import os
import re
from collections import Counter
from pathlib import Path

from passlib import dialects
from passlib.dialects import Problem
from passlib.errors import PasslibError, PassResultError
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.validate import validate
from passlib.passes.result import StepResult

logger = logging.getLogger(__name__)


class Instrument:
    """Base class of the observers of a pipeline; each method is optional.

    Examples
    --------
    >>> import passlib as pl
    >>> class Names(pl.passes.Instrument):
    ...     def before_pass(self, step, model):
    ...         print(step)
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> _ = pl.Pipeline("removeDeadNodes{verbose=False}").run(model, [Names()])
    removeDeadNodes{verbose=False}
    """

    def before_pass(self, step: Step, model: Model) -> None:
        """Observe the input of a step."""

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Observe the result of a step; an exception ends the pipeline."""

    def failed(self, step: Step, model: Model, error: Exception) -> None:
        """Observe the input of a failed step."""


class Timing(Instrument):
    """Sums the time of each pass.

    Attributes
    ----------
    seconds : dict of str to float
        Wall clock time by pass.

    Examples
    --------
    >>> import passlib as pl
    >>> timing = pl.passes.Timing()
    >>> _ = pl.Pipeline("removeDeadNodes").run(pl.Model(pl.sym.relu(pl.sym.var("x"))), [timing])
    >>> list(timing.seconds)
    ['removeDeadNodes']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Add the time of a step."""
        self.add(result)

    def add(self, result: StepResult) -> None:
        """Add the time of a step that ran elsewhere."""
        self.seconds[result.name] = self.seconds.get(result.name, 0.0) + result.seconds

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        width = max(map(len, self.seconds), default=0)
        slowest = sorted(self.seconds.items(), key=lambda item: -item[1])
        lines = [f"{name:{width}}  {1000 * seconds:10.1f} ms" for name, seconds in slowest]
        return "\n".join([*lines, f"{'total':{width}}  {1000 * total:10.1f} ms"])


class Dump(Instrument):
    """Saves the model after each step in a separate folder.

    Parameters
    ----------
    folder : path-like
        Created if missing. Each model is saved in ``<number>-<pass>``.
    changed_only : bool
        Skip steps that changed nothing.

    Examples
    --------
    >>> import os, tempfile
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pl.Pipeline("removeDeadNodes").run(model, [pl.passes.Dump(folder)])
    ...     print(sorted(os.listdir(folder)))
    ['001-removeDeadNodes']
    """

    def __init__(self, folder: str | os.PathLike[str], *, changed_only: bool = False) -> None:
        self._folder = Path(folder)
        self._changed_only = changed_only
        self._count = 0

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Save the model."""
        self._count += 1
        if result.modified or not self._changed_only:
            self._save(step, model)

    def failed(self, step: Step, model: Model, error: Exception) -> None:
        """Save the input of the failed step."""
        self._save(step, model, "before-")

    def _save(self, step: Step, model: Model, prefix: str = "") -> None:
        name = re.sub(r"[^\w.-]+", "_", step.name)
        folder = self._folder / f"{self._count:03}-{prefix}{name}"
        folder.mkdir(parents=True, exist_ok=True)
        model.save(folder / target_name(model))


class Log(Instrument):
    """Logs steps at level INFO and failures at level ERROR, to loggers of ``passlib.passes``.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> pl.Pipeline("removeDeadNodes").run(model, [pl.passes.Log()]).modified
    False
    """

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Log the result of a step."""
        logger.info("%s", result)

    def failed(self, step: Step, model: Model, error: Exception) -> None:
        """Log a failure."""
        logger.error("%s failed: %s", step, error)


class Verify(Instrument):
    """Validates the model after each step that changed it, see `passlib.validate`.

    Errors fail the step, and so do warnings that the first model has fewer of: unknown operators,
    unexpected inputs or attributes, weights of the wrong shape.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.exp(x) + pl.sym.exp(x))
    >>> len(pl.Pipeline("mergeEqualNodes").run(model, [pl.passes.Verify()]).steps)
    1
    """

    def __init__(self) -> None:
        self._before: list[Problem] | None = None
        self._last: Model | None = None

    def before_pass(self, step: Step, model: Model) -> None:
        """Validate the first model."""
        self._last = model
        if self._before is None:
            self._before = _problems_of(model)

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Validate the result of a step.

        Raises
        ------
        PassResultError
            The model is invalid.
        """
        if not result.modified:
            return
        try:
            found = list(map(str, _new_problems(self._before or [], _problems_of(model))))
        except PasslibError as error:  # the model cannot be saved
            found = [str(error)]
        if found:
            shown = "; ".join(found[:3]) + (f"; ... ({len(found)} in all)" if found[3:] else "")
            shown += "".join(_reshaped(self._last, model)[:3])
            raise PassResultError(f"the model after {step} is invalid: {shown}")


def target_name(model: Model) -> str:
    """Return a file name for models of this dialect."""
    suffixes = dialects.find(model.dialect).suffixes
    return "model" + (suffixes[0] if suffixes else "")


def save_part(model: Model, folder: Path) -> str:
    """Save a model, or a part of one, for another process; return the path of the graph's file."""
    options = dialects.find(model.dialect).part_options
    return model.save(folder / target_name(model), durable=False, **options)[0]


def _reshaped(before: Model | None, after: Model) -> list[str]:
    """Return messages about weights whose shape has changed."""
    old = {} if before is None else {**before.args, **before.aux}
    return [
        f"; weight {name!r} has shape {tuple(array.shape)}, before {tuple(old[name].shape)}"
        for name, array in {**after.args, **after.aux}.items()
        if name in old and tuple(old[name].shape) != tuple(array.shape)
    ]


def _problems_of(model: Model) -> list[Problem]:
    """Validate a model without its unused weights."""
    import tempfile

    known = set(model.symbol.list_inputs())
    args, aux = (
        {name: array for name, array in weights.items() if name in known}
        for weights in (model.args, model.aux)
    )
    pruned = Model.of_parts(model.symbol, args, aux, model.data().template)
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        files = pruned.save(Path(folder) / target_name(model), durable=False)
        found = validate(files[0], model.dialect)
    # Drop the path of the temporary file from the messages.
    return [each._replace(place=each.place.rpartition("/")[2]) for each in found]


def _new_problems(before: list[Problem], after: list[Problem]) -> list[Problem]:
    """Return the errors, and the new warnings of kinds that have become more frequent."""
    known = {each.message for each in before}
    counts = Counter(map(_kind, after))
    counts.subtract(map(_kind, before))
    return [
        each
        for each in after
        if each.severity == "error" or (each.message not in known and counts[_kind(each)] > 0)
    ]


def _kind(problem: Problem) -> tuple[str, str]:
    """Return the severity and the message without names, numbers and details."""
    return problem.severity, re.sub(r"'[^']*'|\d+|: .*", "", problem.message)
