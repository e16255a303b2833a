"""Observers of a pipeline: time, files of every step, a log, checks."""

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
    """Base class of what looks on while a pipeline runs. No method need be overridden.

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
        """Look at the model that a step is about to get."""

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Look at the model that a step returned. An exception ends the pipeline."""

    def failed(self, step: Step, model: Model, error: Exception) -> None:
        """Look at the model that a step failed on."""


class Timing(Instrument):
    """Sums up the time of every pass.

    Attributes
    ----------
    seconds : dict of str to float
        Wall clock time by the name of the pass.

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
    """Writes the model after every step into a folder of its own.

    Parameters
    ----------
    folder : path-like
        Made where it is missing. Models are saved as ``<number>-<pass>`` in it.
    changed_only : bool
        Leave out steps that changed nothing.

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
        """Save the model that a step failed on."""
        self._save(step, model, "before-")

    def _save(self, step: Step, model: Model, prefix: str = "") -> None:
        name = re.sub(r"[^\w.-]+", "_", step.name)
        folder = self._folder / f"{self._count:03}-{prefix}{name}"
        folder.mkdir(parents=True, exist_ok=True)
        model.save(folder / target_name(model))


class Log(Instrument):
    """Logs every step at level INFO, and failures at level ERROR, as ``passlib.passes``.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> pl.Pipeline("removeDeadNodes").run(model, [pl.passes.Log()]).modified
    False
    """

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Log what a step did."""
        logger.info("%s", result)

    def failed(self, step: Step, model: Model, error: Exception) -> None:
        """Log that a step failed."""
        logger.error("%s failed: %s", step, error)


class Verify(Instrument):
    """Checks the model after every step that changed it, as `passlib.validate` checks files.

    Errors count, and warnings of a kind that the first model has fewer of: an operator that the
    dialect does not have, inputs or attributes that an operator does not take, a weight of the
    wrong shape.

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
        """Check the first model."""
        self._last = model
        if self._before is None:
            self._before = _problems_of(model)

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Check a model.

        Raises
        ------
        PassResultError
            The model is not sound.
        """
        if not result.modified:
            return
        try:
            found = list(map(str, _new_problems(self._before or [], _problems_of(model))))
        except PasslibError as error:  # it cannot even be saved
            found = [str(error)]
        if found:
            shown = "; ".join(found[:3]) + (f"; ... ({len(found)} in all)" if found[3:] else "")
            shown += "".join(_reshaped(self._last, model)[:3])
            raise PassResultError(f"the model after {step} is not sound: {shown}")


def target_name(model: Model) -> str:
    """Return a name that a model of this dialect can be saved under."""
    suffixes = dialects.find(model.dialect).suffixes
    return "model" + (suffixes[0] if suffixes else "")


def save_part(model: Model, folder: Path) -> str:
    """Save a model, which may be a part of one, for another process; return the graph's file."""
    options = dialects.find(model.dialect).part_options
    return model.save(folder / target_name(model), durable=False, **options)[0]


def _reshaped(before: Model | None, after: Model) -> list[str]:
    """Say which weights have another shape than before."""
    old = {} if before is None else {**before.args, **before.aux}
    return [
        f"; weight {name!r} has the shape {tuple(array.shape)}, before {tuple(old[name].shape)}"
        for name, array in {**after.args, **after.aux}.items()
        if name in old and tuple(old[name].shape) != tuple(array.shape)
    ]


def _problems_of(model: Model) -> list[Problem]:
    """Return what `passlib.validate` finds in a model, weights that nothing reads left out."""
    import tempfile  # which few need

    known = set(model.symbol.list_inputs())
    args, aux = (
        {name: array for name, array in weights.items() if name in known}
        for weights in (model.args, model.aux)
    )
    pruned = Model.of_parts(model.symbol, args, aux, model.data().template)
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        files = pruned.save(Path(folder) / target_name(model), durable=False)
        found = validate(files[0], model.dialect)
    # A message may begin with the path of a file that is gone by now.
    return [each._replace(place=each.place.rpartition("/")[2]) for each in found]


def _new_problems(before: list[Problem], after: list[Problem]) -> list[Problem]:
    """Return errors, and the warnings that a model did not have before and has more of."""
    known = {each.message for each in before}
    counts = Counter(map(_kind, after))
    counts.subtract(map(_kind, before))
    return [
        each
        for each in after
        if each.severity == "error" or (each.message not in known and counts[_kind(each)] > 0)
    ]


def _kind(problem: Problem) -> tuple[str, str]:
    """Return the severity and what a message says without names, numbers and details."""
    return problem.severity, re.sub(r"'[^']*'|\d+|: .*", "", problem.message)
