"""Predicates that say whether a model is wrong."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from passlib.errors import GraphError, PasslibError
from passlib.model import Model
from passlib.passes import Pipeline, PipelineError
from passlib.passes.instruments import save_part
from passlib.passes.isolation import IsolatedError
from passlib.workbench.comparison import DRAWN, Reference
from passlib.workbench.numbers import Tolerance

_SKIP: Final = 125
_NOT_RUN: Final = (126, 127)
"""What a shell returns if it cannot run a command, or does not find it."""

_LEAST_SECONDS: Final = 10.0


class NothingFailsError(PasslibError):
    """What was to be searched for a fault has none, or is wrong from the beginning.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.exp(pl.sym.var("x", shape=(2,))))
    >>> try:
    ...     pl.workbench.bisect(model, pl.Pipeline("removeDeadNodes"), pl.workbench.Differs(model))
    ... except pl.workbench.NothingFailsError:
    ...     print("nothing is wrong")
    nothing is wrong
    """


class Differs:
    """Whether a model has other numbers or names of outputs than a given one, or cannot be run.

    Parameters
    ----------
    reference : Model
    inputs : mapping of str to array, or sequence of these, optional
        By default `n` are drawn, those that `compare` draws.
    tolerance : Tolerance, optional
    shapes : mapping of str to shape, optional
        Of inputs that the model does not declare, for drawing.
    n : int

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> differs = pl.workbench.Differs(pl.Model(pl.sym.relu(x, name="y")))
    >>> differs(pl.Model(pl.sym.relu(x, name="y"))), differs(pl.Model(pl.sym.exp(x, name="y")))
    (False, True)
    """

    def __init__(
        self,
        reference: Model,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        n: int = DRAWN,
    ) -> None:
        self._reference = Reference(reference, inputs, n, tolerance, shapes)
        self.inputs = self._reference.inputs

    def __call__(self, model: Model) -> bool:
        """Compare a model with the reference."""
        return bool(self.what(model))

    def what(self, model: Model) -> str:
        """Return what is wrong: ``"names"`` that others use, ``"run"`` or ``"numbers"``."""
        # Numbers first: a part of a model may show them under other names than the whole.
        kind = "names" if self._reference.interface_changes(model) else ""
        try:
            return kind if self._reference.compare(model, names={}).equal else "numbers"
        except PasslibError:
            return kind or "run"


class CommandFails:
    """Whether a shell command fails on a model's file.

    The exit status means what it means to ``git bisect run``: 0 is right, 125 cannot be tested
    and counts as right, all else is wrong; a signal too, which is the fault that is looked for.
    With 126 and 127 the shell says that it cannot run the command, which raises an OSError.

    Parameters
    ----------
    command : str
        ``{}`` stands for the path of the file that has the graph.

    Raises
    ------
    ValueError
        The command has no ``{}``.

    Examples
    --------
    >>> import passlib as pl
    >>> contains_exp = pl.workbench.CommandFails("! grep -q exp {}")
    >>> contains_exp(pl.Model(pl.sym.exp(pl.sym.var("x"), name="y")))
    True
    """

    def __init__(self, command: str) -> None:
        if "{}" not in command:
            raise ValueError(f"{command!r} has no {{}}, which stands for the model's file")
        self._command = command

    def __call__(self, model: Model) -> bool:
        """Save a model and run the command on it."""
        with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
            path = save_part(model, Path(folder))
            command = self._command.replace("{}", shlex.quote(path))
            status = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        code = status.returncode
        if code in _NOT_RUN:
            said = status.stderr.decode("utf-8", "replace").strip().splitlines()
            why = said[-1] if said else "no such command"
            raise OSError(f"the shell cannot run {self._command!r} (exit status {code}): {why}")
        return code not in (0, _SKIP)


class PipelineFails:
    """Whether a pipeline fails on a model in the way in which it fails on a given one.

    Parameters
    ----------
    pipeline : Pipeline
    model : Model
        The given one.
    inputs : mapping of str to array
        For it.
    tolerance : Tolerance, optional
    isolate : bool
        Run the pipeline in a process of its own, which a crash, an exit or a hang ends.
    timeout : float, optional
        Seconds for that process. By default, ten times as long as on the given model, and at
        least 10 seconds.

    Attributes
    ----------
    what : str
        The step and the kind of the error that it raises or what ended its process, or what is
        wrong with its result, see `Differs.what`; empty if nothing is.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def no_exp(graph: pl.Graph) -> None:
    ...     if graph.find("y"):
    ...         raise ValueError("there is an exp")
    >>> model = pl.Model(pl.sym.exp(pl.sym.var("x"), name="y"))
    >>> fails = pl.workbench.PipelineFails(pl.Pipeline("no_exp"), model, {"x": pl.nd.ones((2,))})
    >>> fails.what
    'no_exp: ValueError'
    """

    def __init__(
        self,
        pipeline: Pipeline,
        model: Model,
        inputs: Mapping[str, Any],
        tolerance: Tolerance | None = None,
        *,
        isolate: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._tolerance = tolerance or Tolerance()
        self._isolate = isolate
        self._timeout = timeout
        start = time.perf_counter()
        self.what = self._fault(model, inputs)
        if isolate and timeout is None:
            self._timeout = max(10 * (time.perf_counter() - start), _LEAST_SECONDS)

    def __call__(self, model: Model, inputs: Mapping[str, Any]) -> bool:
        """Run the pipeline on a model, and compare what it returns with the model."""
        return bool(self.what) and self._fault(model, inputs) == self.what

    def _fault(self, model: Model, inputs: Mapping[str, Any]) -> str:
        try:
            after = self._pipeline.run(model, isolate=self._isolate, timeout=self._timeout).model
        except PipelineError as error:
            return _kind(error)
        except IsolatedError as error:
            shutil.rmtree(error.folder, ignore_errors=True)
            return f"{error.step}: {error.how}"
        except GraphError:
            return "save"
        return Differs(model, inputs, self._tolerance).what(after)


def _kind(error: PipelineError) -> str:
    """Return what two runs of a pipeline that fail for one reason have in common."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f"{error.step}: {type(cause).__name__}"
