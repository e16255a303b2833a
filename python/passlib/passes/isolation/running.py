"""Running a pipeline in a process of its own."""

from __future__ import annotations

import itertools
import pickle
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from passlib.errors import PassError, PasslibError, PipelineError
from passlib.library import find_backend
from passlib.library.pipeline import Steps, text_of
from passlib.model import Model
from passlib.model import load as load_model
from passlib.passes.isolation.answer import Answer
from passlib.passes.isolation.client import run_forked
from passlib.passes.isolation.reproducer import Reproducer, sources_of
from passlib.passes.result import PipelineResult

__all__ = ["IsolatedError", "linked", "play", "run_child", "run_isolated"]

_CHILD: Final = "passlib.passes.isolation.child"

_LINES: Final = 5
"""Lines of output in a message."""


class IsolatedError(PassError):
    """A pass ended its process, or did not end.

    Attributes
    ----------
    folder : str
        The reproducer, which ``passlib run`` plays back.
    """

    def __init__(self, message: str, *, folder: str) -> None:
        super().__init__(message)
        self.folder = folder


def run_isolated(
    model: Model,
    steps: Steps,
    *,
    timeout: float | None = None,
    memory: int | None = None,
    inference: Mapping[str, Any] | None = None,
) -> PipelineResult:
    """Run a pipeline in a process of its own.

    Parameters
    ----------
    model : Model
        Is saved for the process; the result is loaded from the file that it saves.
    steps : tuple of Step or Repeat
    timeout : float, optional
        Seconds, after which the process is ended.
    memory : int, optional
        Bytes of address space that the process may have.
    inference : mapping, optional
        As for `Pipeline.run`.

    Raises
    ------
    IsolatedError
        The process crashed, exited, took too long or too much memory.
    PipelineError
        A step failed, as without isolation.
    """
    folder = Path(tempfile.mkdtemp(prefix="passlib-reproducer-"))
    keep = False
    try:
        Reproducer.write(folder, model, sources_of(steps), text_of(steps), inference or {}, memory)
        answer = run_child(folder, _CHILD, timeout)
        if not answer.errors:
            return _result(answer, model)
        keep = any(isinstance(error, MemoryError) for error in answer.errors)
        raise linked(answer.errors, model, folder if keep else None)
    except IsolatedError:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def play(folder: Path, timeout: float | None = None) -> PipelineResult:
    """Run what a reproducer holds, again in a process of its own.

    Raises
    ------
    FormatError
        The folder is no reproducer.
    IsolatedError, PipelineError
        As by `run_isolated`; the folder stays.
    """
    reproducer = Reproducer.read(folder)
    model = reproducer.load(folder)
    answer = run_child(folder, _CHILD, timeout)
    if answer.errors:
        raise linked(answer.errors, model, folder)
    return _result(answer, model)


def _result(answer: Answer, model: Model) -> PipelineResult:
    path, steps = answer.value
    return PipelineResult(load_model(path, model.dialect), steps, model)


def run_child(folder: Path, module: str, timeout: float | None) -> Answer:
    """Run a module in a process of its own on a folder, into which it writes its answer.

    Parameters
    ----------
    folder : Path
        Has a reproducer.
    module : str
        Calls `passlib.passes.isolation.child.answer`.
    timeout : float, optional
        Seconds, after which the process is ended.

    Raises
    ------
    IsolatedError
        The process crashed, exited, or took too long.
    """
    for name in ("answer", "progress"):
        (folder / name).unlink(missing_ok=True)
    status = run_forked(folder, module, timeout)
    if status is None:
        raise _error(folder, f"was ended after {timeout:g} s, because it had not ended by itself")
    try:
        content = (folder / "answer").read_bytes()
    except OSError:
        raise _error(folder, _cause(status)) from None
    answer = pickle.loads(content)
    assert isinstance(answer, Answer)
    return answer


def _cause(status: int) -> str:
    if status >= 0:
        return f"ended its process with exit status {status}"
    return f"crashed with signal {signal.Signals(-status).name}"


def _error(folder: Path, what: str) -> IsolatedError:
    try:
        number, _, name = (folder / "progress").read_text("utf-8").partition(" ")
        library = _library(folder, name)
        who = f"pass {name!r} (step {number}) of {library}"
    except OSError:
        model = Reproducer.read(folder).model
        who = f"the process that loads {model}"
    lines = (folder / "output.txt").read_bytes().decode("utf-8", "replace").splitlines()
    last = " | ".join(line for line in lines[-_LINES:] if line.strip())
    printed = f"; it last printed: {last}" if last else ""
    return IsolatedError(
        f"{who} {what}{printed}; to play it back: passlib run {folder}", folder=str(folder)
    )


def _library(folder: Path, name: str) -> str:
    """Return the library of a pass, which this process need not have loaded itself."""
    try:
        return find_backend(name).declaration.library
    except PasslibError:
        return " or ".join(path for path, _ in Reproducer.read(folder).sources)


def linked(
    errors: tuple[BaseException, ...], model: Model | None, folder: Path | None
) -> BaseException:
    """Return the first error with the others as its causes again."""
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    first = errors[0]
    if isinstance(first, PipelineError):
        first.model = model
    if folder is not None and any(isinstance(error, MemoryError) for error in errors):
        made = IsolatedError(
            f"{first}: too much memory; to play it back: passlib run {folder}", folder=str(folder)
        )
        made.__cause__ = first
        return made
    return first
