"""The process that runs a pipeline: ``python -m passlib.passes.isolation.child FOLDER``."""

from __future__ import annotations

import pickle
import resource
import sys
from pathlib import Path

from passlib.library.pipeline import Step, check, execute, parse
from passlib.model import Model
from passlib.passes.instruments import Instrument, target_name
from passlib.passes.isolation.answer import Answer
from passlib.passes.isolation.reproducer import Reproducer
from passlib.passes.observer import ModelObserver

__all__ = ["main"]


class _Progress(Instrument):
    """Writes which step runs, for the case that it is the last one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"
        self._count = 0

    def before_pass(self, step: Step, model: Model) -> None:
        self._count += 1
        self._path.write_text(f"{self._count} {step.name}", "utf-8")


def main(folder: Path) -> None:
    """Run what a folder holds, and write the answer into it."""
    reproducer = Reproducer.read(folder)
    sys.path[:] = reproducer.path
    if reproducer.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (reproducer.memory, reproducer.memory))
    try:
        model = reproducer.load(folder)
        steps = parse(reproducer.pipeline) if reproducer.pipeline else ()
        options = check(steps, reproducer.pipeline, model.dialect)
        observer = ModelObserver([_Progress(folder)], reproducer.inference)
        last = execute(steps, model, options, observer)
        place = folder / "result"
        place.mkdir(exist_ok=True)
        files = last.save(place / target_name(last), durable=False)
        answer = Answer(files[0], tuple(observer.results))
    except Exception as error:
        answer = Answer("", errors=tuple(_chain(error)))
    (folder / "answer").write_bytes(_pickled(answer))


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        if hasattr(error, "model"):
            error.model = None  # the parent has it
        found.append(error)
        error = error.__cause__
    return found


def _pickled(answer: Answer) -> bytes:
    try:
        return pickle.dumps(answer)
    except Exception:  # an exception of a pass that pickle does not take
        kept = [each for each in answer.errors if _can_be_pickled(each)]
        return pickle.dumps(Answer("", errors=tuple(kept)))


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]))
