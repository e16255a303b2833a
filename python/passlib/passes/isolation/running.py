"""Running a pipeline in a process of its own."""

from __future__ import annotations

import itertools
import pickle
import signal
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from passlib.errors import FormatError, PipelineError
from passlib.library.pipeline import Steps, text_of
from passlib.model import Model
from passlib.model import load as load_model
from passlib.passes.isolation.answer import Answer
from passlib.passes.isolation.client import run_forked
from passlib.passes.isolation.failure import IsolatedError, failure, reproducer_folder
from passlib.passes.isolation.reproducer import Reproducer, sources_of
from passlib.passes.result import PipelineResult

_CHILD: Final = "passlib.passes.isolated"


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
    with reproducer_folder() as folder:
        Reproducer.write(folder, model, sources_of(steps), text_of(steps), inference or {}, memory)
        answer = run_child(folder, _CHILD, timeout)
        if answer.errors:
            raise linked(answer.errors, model, folder)
        return _result(answer, model)


def play(folder: Path, timeout: float | None = None) -> PipelineResult:
    """Run what a reproducer holds, again in a process of its own, which loads its libraries.

    That runs their code: see SECURITY.md. Nothing is written into the folder.

    Raises
    ------
    FormatError
        The folder is no reproducer, or a path in it leads elsewhere.
    IsolatedError, PipelineError
        As by `run_isolated`, with this folder.
    """
    reproducer = Reproducer.read(folder)
    place = reproducer.checked_place(folder)
    model = load_model(place, reproducer.dialect or None)
    with tempfile.TemporaryDirectory(prefix="passlib-") as name:
        work = Path(name)
        replace(reproducer, model=str(place)).store(work)
        try:
            answer = run_child(work, _CHILD, timeout)
            if answer.errors:
                raise linked(answer.errors, model, work)
        except IsolatedError as error:
            message = str(error).replace(name, str(folder))
            raise IsolatedError(
                message, folder=str(folder), number=error.number, step=error.step, how=error.how
            ) from error.__cause__
        except (TypeError, ValueError, LookupError) as error:
            # What the description asks for fits no pass or model.
            raise FormatError(f"{folder}: {type(error).__name__}: {error}") from error
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
        what = f"was ended after {timeout:g} s, because it had not ended by itself"
        raise failure(folder, what, "time")
    try:
        content = (folder / "answer").read_bytes()
    except OSError:
        raise failure(folder, *_cause(status)) from None
    answer = pickle.loads(content)
    assert isinstance(answer, Answer)
    return answer


def _cause(status: int) -> tuple[str, str]:
    if status >= 0:
        return f"ended its process with exit status {status}", f"exit status {status}"
    name = signal.Signals(-status).name
    return f"crashed with signal {name}", name


def linked(
    errors: tuple[BaseException, ...], model: Model | None, folder: Path | None
) -> BaseException:
    """Return the first error with the others as its causes again.

    Too much memory is an `IsolatedError` where there is a folder to play it back.
    """
    for error, cause in itertools.pairwise(errors):
        error.__cause__ = cause
    first = errors[0]
    if isinstance(first, PipelineError):
        first.model = model
    if folder is not None and any(isinstance(error, MemoryError) for error in errors):
        made = failure(folder, f"failed: {first}: too much memory", "memory")
        made.__cause__ = first
        return made
    return first
