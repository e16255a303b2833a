"""The child side of isolation: a server, ``python -m passlib.passes.isolated``, and its forks."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import pickle
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes.instruments import Instrument, target_name
from passlib.passes.isolation import Answer, Reproducer
from passlib.passes.pipeline import Pipeline


def serve() -> None:
    """Fork a process for each line of JSON on the standard input, until the input ends.

    The number of a process goes into ``pid`` of its folder, its exit status into ``status``. A
    forked process has passlib imported already, which would take longer than most passes. The
    server has one thread and runs no pass itself.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    awake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, Path] = {}
    left = b""
    while True:
        ready = select.select([sys.stdin.fileno(), awake], [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
            _note_ended(running)
        if sys.stdin.fileno() not in ready:
            continue
        data = os.read(sys.stdin.fileno(), 1 << 16)
        if not data:
            break
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            wanted = json.loads(line)
            running[_forked(wanted)] = Path(wanted["folder"])
    for number in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)


def _note_ended(running: dict[int, Path]) -> None:
    while running:
        number, status = os.waitpid(-1, os.WNOHANG)
        if not number:
            return
        _write(running.pop(number), "status", str(os.waitstatus_to_exitcode(status)))


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file atomically; ignore a folder that is gone."""
    with contextlib.suppress(OSError):
        made = folder / f".{name}"
        made.write_text(text, "utf-8")
        made.replace(folder / name)


def _forked(wanted: dict[str, Any]) -> int:
    module, _, function = wanted["function"].partition(":")
    main = getattr(importlib.import_module(module), function)
    number = os.fork()
    if number:
        _write(Path(wanted["folder"]), "pid", str(number))
        return number
    code = 1
    try:
        os.setsid()
        _prepare(wanted)
        main(Path(wanted["folder"]))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _prepare(wanted: dict[str, Any]) -> None:
    """Take over output, environment and working directory of the process that asked."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(f"{wanted['folder']}/output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for own, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(own, target)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["directory"])


class Progress(Instrument):
    """Writes the current step to a file, so that the parent can name it after a crash."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "progress"
        self._count = 0

    def before_pass(self, step: Step, model: Model) -> None:
        """Write the number and the name of a step."""
        self._count += 1
        self._path.write_text(f"{self._count} {step.name}", "utf-8")


def answer(folder: Path, work: Callable[[Reproducer], Any]) -> None:
    """Call a function with the reproducer of a folder; write its result or error to ``answer``.

    The limits of the reproducer apply from here on.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1  # <linux/prctl.h>: end this process with its parent
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))
    reproducer = Reproducer.read(folder)
    # Another machine has its standard library elsewhere.
    sys.path[:] = dict.fromkeys([*reproducer.path, *sys.path])
    if reproducer.memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (reproducer.memory, reproducer.memory))
    try:
        found = Answer(work(reproducer))
    except Exception as error:
        found = Answer(errors=tuple(_chain(error)))
    (folder / "answer").write_bytes(_pickled(found))


def _chain(error: BaseException | None) -> list[BaseException]:
    found = []
    while error is not None:
        if hasattr(error, "model"):
            error.model = None  # the parent has the model
        found.append(error)
        error = error.__cause__
    return found


def _pickled(found: Answer) -> bytes:
    try:
        return pickle.dumps(found)
    except Exception:  # an error that cannot be pickled
        kept = [each for each in found.errors if _can_be_pickled(each)]
        return pickle.dumps(Answer(errors=tuple(kept)))


def _can_be_pickled(error: BaseException) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


def run(folder: Path) -> None:
    """Run the pipeline of a folder; answer with the path of the result and the steps."""

    def work(reproducer: Reproducer) -> Any:
        model = reproducer.load(folder)
        pipeline = Pipeline(reproducer.pipeline)
        result = pipeline.run(model, [Progress(folder)], **reproducer.inference)
        place = folder / "result"
        place.mkdir(exist_ok=True)
        files = result.model.save(place / target_name(result.model), durable=False)
        return files[0], result.steps

    answer(folder, work)


if __name__ == "__main__":
    serve()
