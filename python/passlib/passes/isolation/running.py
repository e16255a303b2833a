"""Running a pipeline in a process of its own."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from passlib.errors import PassError, PipelineError
from passlib.library import find_backend
from passlib.library.pipeline import Steps, text_of
from passlib.model import Model
from passlib.model import load as load_model
from passlib.passes.isolation.answer import Answer
from passlib.passes.isolation.reproducer import Reproducer
from passlib.passes.result import PipelineResult

__all__ = ["IsolatedError", "play", "run_isolated"]

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
        Reproducer.write(folder, model, steps, text_of(steps), inference or {}, memory)
        answer = _answer(folder, timeout)
        if not answer.errors:
            return PipelineResult(load_model(answer.model, model.dialect), answer.steps, model)
        keep = any(isinstance(error, MemoryError) for error in answer.errors)
        raise _linked(answer.errors, model, folder if keep else None)
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
    answer = _answer(folder, timeout)
    if answer.errors:
        raise _linked(answer.errors, model, folder)
    return PipelineResult(load_model(answer.model, model.dialect), answer.steps, model)


def _answer(folder: Path, timeout: float | None) -> Answer:
    for name in ("answer", "progress"):
        (folder / name).unlink(missing_ok=True)
    command = [sys.executable, "-m", "passlib.passes.isolation.child", str(folder)]
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            raise _error(folder, f"was ended after {timeout:g} s, because it had not") from None
        except BaseException:
            # Ctrl-C ends a pass that hangs.
            _end(process)
            raise
    try:
        content = (folder / "answer").read_bytes()
    except OSError:
        raise _error(folder, _cause(status)) from None
    answer = pickle.loads(content)
    assert isinstance(answer, Answer)
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _cause(status: int) -> str:
    if status >= 0:
        return f"ended its process with exit status {status}"
    return f"crashed with signal {signal.Signals(-status).name}"


def _error(folder: Path, what: str) -> IsolatedError:
    try:
        number, _, name = (folder / "progress").read_text("utf-8").partition(" ")
        library = find_backend(name).declaration.library
        who = f"pass {name!r} (step {number}) of {library}"
    except OSError:
        who = "the process, before any pass ran,"
    lines = (folder / "output.txt").read_bytes().decode("utf-8", "replace").splitlines()
    last = " | ".join(line for line in lines[-_LINES:] if line.strip())
    printed = f"; it last printed: {last}" if last else ""
    return IsolatedError(
        f"{who} {what}{printed}; to play it back: passlib run {folder}", folder=str(folder)
    )


def _linked(errors: tuple[BaseException, ...], model: Model, folder: Path | None) -> BaseException:
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
