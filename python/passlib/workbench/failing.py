"""Predicates that decide whether a model is broken."""

from __future__ import annotations

import copy
import re
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
from passlib.model.loading import AnyModel, as_model
from passlib.passes import Pipeline, PipelineError
from passlib.passes.instruments import save_part
from passlib.passes.isolation import IsolatedError
from passlib.workbench.comparison import DRAWN, Reference, names_of_part
from passlib.workbench.numbers import Tolerance
from passlib.workbench.surviving import CrashError, survived

_SKIP: Final = 125
_NOT_RUN: Final = (126, 127)
"""Exit statuses of a shell that cannot run a command."""

BRACES: Final = r"""\"\{\}\"|'\{\}'|\{\}"""
"""The place of a path in a command; users also put it in quotation marks of the shell."""

_LEAST_SECONDS: Final = 10.0


class NothingFailsError(PasslibError):
    """No fault was found, or the model is broken from the beginning.

    Attributes
    ----------
    not_covered : tuple of str
        Sentences about gaps in the inputs, see `Comparison`.

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

    def __init__(self, message: str, not_covered: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.not_covered = tuple(not_covered)


class Differs:
    """Whether a model cannot run, or its outputs differ from those of a reference in value or name.

    Parameters
    ----------
    inputs : mapping of str to array, or sequence of these, optional
        By default `n` random inputs, the same as in `compare`.
    shapes : mapping of str to shape, optional
        Shapes of random inputs that the model does not declare.

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
        reference: AnyModel,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        n: int = DRAWN,
    ) -> None:
        self.tolerance = tolerance or Tolerance()
        self._reference = Reference(as_model(reference), inputs, n, self.tolerance, shapes)
        self.inputs = self._reference.inputs

    def __call__(self, model: Model) -> bool:
        """Compare a model with the reference."""
        return bool(self.what(model))

    def what(self, model: Model) -> str:
        """Return the fault: ``"names"`` (of inputs, outputs), ``"run"``, ``"numbers"`` or none."""
        # Compare numbers first: a part of a model may have other names.
        found = self.fault(model)
        return found if found == "numbers" or not self.renamed(model) else "names"

    def fault(self, model: Model) -> str:
        """Return ``"run"``, ``"numbers"`` or none, whatever the inputs and outputs are called."""
        try:
            return (
                ""
                if self._reference.compare(model, names_of_part(self._reference.model, model)).equal
                else "numbers"
            )
        except PasslibError:
            return "run"

    def renamed(self, model: Model) -> list[str]:
        """Return sentences on inputs and outputs of other names."""
        return self._reference.interface_changes(model)

    def differences(self, model: Model) -> str:
        """Return how the outputs of a model differ, or why it does not run, for a message."""
        names = names_of_part(self._reference.model, model)
        try:
            return self._reference.compare(model, names).differences
        except PasslibError as error:
            return str(error)

    def not_covered(self, model: Model) -> tuple[str, ...]:
        """Return what the inputs do not show of a model that does not differ."""
        return self._reference.judge(model, names_of_part(self._reference.model, model)).not_covered

    def crashes(self, model: Model) -> bool:
        """Whether a forked process crashes that runs a copy of a model on the inputs."""
        try:
            survived(lambda: self._reference.run(copy.copy(model)))
        except CrashError:
            return True
        except PasslibError:
            return False
        return False


class CommandFails:
    """Whether a shell command fails on a model's file.

    Exit statuses are those of ``git bisect run``: 0 means correct, 125 not testable, which counts
    as correct, and others broken, including signals. 126 and 127, which mean that the shell cannot
    run the command, raise an OSError.

    Parameters
    ----------
    command : str
        ``{}`` is the path of the graph's file.

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
            raise ValueError(f"{command!r} needs {{}}, the path of the model")
        self._command = command

    def __call__(self, model: Model) -> bool:
        """Save a model and run the command on it."""
        with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
            path = save_part(model, Path(folder))
            quoted = shlex.quote(path)
            command = re.sub(BRACES, lambda _: quoted, self._command)
            status = subprocess.run(["sh", "-c", command], capture_output=True, check=False)
        code = status.returncode
        if code in _NOT_RUN:
            said = status.stderr.decode("utf-8", "replace").strip().splitlines()
            why = said[-1] if said else "no such command"
            raise OSError(f"the shell cannot run {self._command!r} (exit status {code}): {why}")
        return code not in (0, _SKIP)


class CommandIsSlow:
    """Whether a shell command takes too long on a model's file.

    The least time of several runs counts, so that other work of the machine does not decide. One
    run that is fast enough is an answer. A command that fails is not slow.

    Parameters
    ----------
    command : str
        ``{}`` is the path of the graph's file.
    seconds : float
        The least time that is too long, with the time in which the command starts.
    runs : int
        Number of runs that must all take that long.

    Raises
    ------
    ValueError
        The command has no ``{}``.

    Examples
    --------
    >>> import passlib as pl
    >>> is_slow = pl.workbench.CommandIsSlow("grep -q exp {} && sleep 0.2", 0.2)
    >>> is_slow(pl.Model(pl.sym.exp(pl.sym.var("x"), name="y")))
    True
    """

    def __init__(self, command: str, seconds: float, runs: int = 3) -> None:
        self._fails = CommandFails(command)
        self._seconds = seconds
        self._runs = runs

    def __call__(self, model: Model) -> bool:
        """Run the command on a model until it is fast once."""
        return all(self._is_slow(model) for _ in range(self._runs))

    def _is_slow(self, model: Model) -> bool:
        start = time.perf_counter()
        return not self._fails(model) and time.perf_counter() - start >= self._seconds


class PipelineFails:
    """Whether a pipeline fails on a model in the same way as on a given model.

    Parameters
    ----------
    isolate : bool
        Run the pipeline in a separate process, which may crash, exit or hang.
    timeout : float, optional
        Time limit of that process in seconds (default: ten times the time on the given model, at
        least 10).

    Attributes
    ----------
    what : str
        The step and the kind of its error, or the fault of the result, see `Differs.what`; empty
        if nothing fails.

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
        model: AnyModel,
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
        self.what = self._fault(as_model(model), inputs)
        if isolate and timeout is None:
            self._timeout = max(10 * (time.perf_counter() - start), _LEAST_SECONDS)

    def __call__(self, model: Model, inputs: Mapping[str, Any]) -> bool:
        """Run the pipeline on a model and compare the result."""
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
    """Return the step and the type of the original error."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return f"{error.step}: {type(cause).__name__}"
