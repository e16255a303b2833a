"""What a process of its own does, whatever it is for: limits, progress, the answer."""

from __future__ import annotations

import ctypes
import pickle
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes.instruments import Instrument
from passlib.passes.isolation.answer import Answer
from passlib.passes.isolation.reproducer import Reproducer

_PR_SET_PDEATHSIG: Final = 1
"""The number of that request to prctl, in <linux/prctl.h>."""


class Progress(Instrument):
    """Writes which step runs, for the case that it is the last one.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"
        self._count = 0

    def before_pass(self, step: Step, model: Model) -> None:
        """Write number and name."""
        self._count += 1
        self._path.write_text(f"{self._count} {step.name}", "utf-8")


def answer(folder: Path, work: Callable[[Reproducer], Any]) -> None:
    """Do what a folder is for, and write the result or the error into it.

    Parameters
    ----------
    folder : Path
        Has a reproducer, whose limits hold from here on.
    work : callable
        Is given the reproducer.
    """
    _end_with_parent()
    reproducer = Reproducer.read(folder)
    sys.path[:] = reproducer.path
    if reproducer.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (reproducer.memory, reproducer.memory))
    try:
        found = Answer(work(reproducer))
    except Exception as error:
        found = Answer(errors=tuple(_chain(error)))
    (folder / "answer").write_bytes(_pickled(found))


def _end_with_parent() -> None:
    """Ask Linux to end this process with the one that started it, however that ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        if hasattr(error, "model"):
            error.model = None  # the parent has it
        found.append(error)
        error = error.__cause__
    return found


def _pickled(found: Answer) -> bytes:
    try:
        return pickle.dumps(found)
    except Exception:  # an exception of a pass that pickle does not take
        kept = [each for each in found.errors if _can_be_pickled(each)]
        return pickle.dumps(Answer(errors=tuple(kept)))


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True
