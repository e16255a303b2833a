"""Runs pipelines in separate processes, which can crash, hang or exhaust memory."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import inspect
import itertools
import json
import os
import pickle
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from passlib.errors import (
    FormatError,
    LoadError,
    PassError,
    PasslibError,
    PipelineError,
    UnsupportedError,
    listed,
)
from passlib.files.fork_lock import ForkLock
from passlib.files.installation import checked_version
from passlib.files.regular import read_regular
from passlib.library import find_backend
from passlib.library.backends import find_pipeline, is_one_of_ours, order_of
from passlib.library.pipeline import Steps, flat, text_of
from passlib.library.python import PythonPass
from passlib.model import Model
from passlib.model import load as load_model
from passlib.model.model import INFERENCE
from passlib.passes.instruments import save_part
from passlib.passes.result import PipelineResult
from passlib.passes.rules import load_passes, rules_file


@dataclass(frozen=True)
class Answer:
    """The pickled result of a process.

    Attributes
    ----------
    value : object
        None after an error.
    errors : tuple of Exception
        The error and its chain of causes, which pickling would lose.
    """

    value: Any = None
    errors: tuple[BaseException, ...] = ()


_FACTS: Final = "reproducer.json"


@dataclass(frozen=True)
class Reproducer:
    """The work of a process, stored as ``reproducer.json`` in a folder.

    Attributes
    ----------
    model : str
        Path relative to the folder; absolute only for child processes.
    dialect : str
        Empty to detect it from the file.
    sources : list of (str, str)
        Paths of libraries, of Python files with passes and of files of rules, with their sha256.
    inference : dict
        Arguments of `Pipeline.run` for inference.
    memory : int or None
        Limit of the address space in bytes.
    path : list of str
        ``sys.path`` of the process.
    overrides : bool
        Whether the passes of a source may take over the names of earlier ones.
    """

    model: str
    dialect: str
    pipeline: str
    sources: list[tuple[str, str]]
    inference: dict[str, Any] = field(default_factory=dict)
    memory: int | None = None
    path: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    overrides: bool = True

    @classmethod
    def write(
        cls,
        folder: Path,
        model: Model | str,
        sources: Iterable[str],
        text: str,
        inference: Mapping[str, Any],
        memory: int | None,
        *,
        overrides: bool = True,
    ) -> Reproducer:
        """Write a folder with everything except the libraries themselves.

        If ``model`` is a path, the folder gets a link to the model's folder instead of a copy.

        Raises
        ------
        UnsupportedError
            An argument cannot be written as JSON.
        """
        if isinstance(model, Model):
            (folder / "model").mkdir()
            path = save_part(model, folder / "model")
            place, dialect = str(Path(path).relative_to(folder)), model.dialect
        else:
            own = Path(model).absolute()
            (folder / "model").symlink_to(own.parent)
            place, dialect = f"model/{own.name}", ""
        made = cls(
            place,
            dialect,
            text,
            [(path, _digest(path)) for path in sources],
            dict(inference),
            memory,
            [each for each in sys.path if each],
            {
                "passlib": checked_version(),
                "python": platform.python_version(),
                "numpy": np.__version__,
                "machine": platform.machine(),
            },
            overrides,
        )
        made.store(folder)
        return made

    def store(self, folder: Path) -> None:
        """Write ``reproducer.json``; raises as `write` does."""
        try:
            content = json.dumps(asdict(self), indent=2)
        except TypeError as error:
            raise UnsupportedError(
                f"isolate=True: an argument cannot be written as JSON: {error}"
            ) from error
        (folder / _FACTS).write_text(content, "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Reproducer:
        """Read the reproducer of a folder.

        Raises
        ------
        FormatError
            ``reproducer.json`` is malformed.
        OSError
            The folder or the file does not exist.
        """
        try:
            content = read_regular(folder / _FACTS)
        except OSError as error:
            what = f"not a reproducer: an isolated pass leaves a folder with {_FACTS}"
            raise type(error)(error.errno, what, str(folder)) from error
        try:
            made = cls(**json.loads(content))
        except (ValueError, TypeError, RecursionError) as error:
            raise FormatError(f"{folder / _FACTS}: not a reproducer: {error}") from error
        wrong = made.wrong_member()
        if wrong:
            raise FormatError(f"{folder / _FACTS}: {wrong!r} has a wrong type")
        return made

    def wrong_member(self) -> str:
        """Return the name of the first member with a wrong type or range, or an empty text."""
        checks = {
            "model": _is_text(self.model),
            "dialect": _is_text(self.dialect),
            "pipeline": _is_text(self.pipeline),
            "sources": isinstance(self.sources, list)
            and all(isinstance(s, (list, tuple)) and len(s) == 2 for s in self.sources)
            and all(_is_text(text) for source in self.sources for text in source),
            "inference": isinstance(self.inference, dict) and self.inference.keys() <= INFERENCE,
            "memory": self.memory is None
            or (type(self.memory) is int and 0 < self.memory <= sys.maxsize),
            "path": isinstance(self.path, list) and all(map(_is_text, self.path)),
            "versions": isinstance(self.versions, dict)
            and all(map(_is_text, self.versions.values())),
            "overrides": isinstance(self.overrides, bool),
        }
        return next((name for name, is_right in checks.items() if not is_right), "")

    def checked_place(self, folder: Path) -> Path:
        """Return the path of the model, of a reproducer from an untrusted source.

        Raises
        ------
        FormatError
            The path leads out of the folder, or the path of a library is not absolute.
        """
        place = PurePosixPath(self.model)
        if place.is_absolute() or ".." in place.parts:
            raise FormatError(f"{folder / _FACTS}: the path {self.model!r} leads out of the folder")
        for path, _ in self.sources:
            if not PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise FormatError(f"{folder / _FACTS}: {path!r} must be absolute, without '..'")
        return (folder / self.model).absolute()

    def load(self, folder: Path) -> Model:
        """Load the libraries and return the model; raises as `load_libraries` does."""
        self.load_libraries()
        return load_model(folder / self.model, self.dialect or None)

    def load_libraries(self) -> None:
        """Load the libraries, the Python files with passes and the files of rules.

        Raises
        ------
        LoadError
            A file has changed since the reproducer was written, or cannot be loaded.
        """
        for path, digest in self.sources:
            if _digest(path) != digest:
                raise LoadError(
                    f"{path} changed since the reproducer was written (sha256 was {digest})"
                )
            load_passes(path, replace=self.overrides)


def sources_of(steps: Steps) -> list[str]:
    """Return the files that define the passes of a pipeline, without those of passlib in Python.

    A file whose pass took over a name of another file comes after it.

    Raises
    ------
    UnsupportedError
        A pass is a function without a source file.
    """
    names = {step.name for step in flat(steps) if not find_pipeline(step.name)}
    found = {_source(name): None for name in sorted(names, key=lambda n: (order_of(n), n))}
    return [path for path in found if path]


def _source(name: str) -> str:
    backend = find_backend(name)
    if backend.library is not None:
        return backend.library.path
    assert isinstance(backend, PythonPass)
    if is_one_of_ours(backend):
        return ""
    try:
        path = rules_file(backend) or inspect.getsourcefile(inspect.unwrap(backend.body))
    except TypeError:
        path = None
    if path is None or not Path(path).is_file():
        raise UnsupportedError(
            f"isolate=True: {backend.described} has no source file that another process could load"
        )
    return str(Path(path).resolve())


def _digest(path: str) -> str:
    try:
        return hashlib.sha256(read_regular(path)).hexdigest()
    except FormatError as error:
        raise LoadError(str(error)) from error
    except OSError as error:
        raise LoadError(f"{path}: {error.strerror}") from error


def _is_text(value: object) -> bool:
    """Whether a value can be a name or a path."""
    return isinstance(value, str) and "\0" not in value


class IsolatedError(PassError):
    """A pass ended its process, or exceeded a limit.

    Attributes
    ----------
    folder : str
        The reproducer, for ``passlib run``.
    number : int
        Number of the step, from 1; 0 before the first step.
    step : str
        Name of the pass; empty before the first step.
    how : str
        The cause: ``"SIGSEGV"``, ``"exit status 7"``, ``"time"`` or ``"memory"``.
    """

    def __init__(
        self, message: str, *, folder: str, number: int = 0, step: str = "", how: str = ""
    ) -> None:
        super().__init__(message)
        self.folder = folder
        self.number = number
        self.step = step
        self.how = how


@contextlib.contextmanager
def reproducer_folder() -> Iterator[Path]:
    """Create a temporary folder, which is kept after an `IsolatedError`."""
    folder = Path(tempfile.mkdtemp(prefix="passlib-reproducer-"))
    keep = False
    try:
        yield folder
    except IsolatedError:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def failure(folder: Path, what: str, how: str) -> IsolatedError:
    """Return the error of the pass that ended the process of a folder.

    Parameters
    ----------
    what : str
        Predicate of the message, such as ``"crashed"``; its subject is the pass.
    how : str
        See `IsolatedError`.
    """
    number, name = 0, ""
    try:
        text, _, name = (folder / "progress").read_text("utf-8").partition(" ")
        number = int(text)
        who = f"pass {name!r} (step {number}) of {_library(folder, name)}"
    except (OSError, ValueError):
        held = Reproducer.read(folder)
        loaded = [*(path for path, _ in held.sources), Path(held.model).name]
        who = f"the process that loads {listed(loaded)}"
    try:
        printed_bytes = (folder / "output.txt").read_bytes()
    except FileNotFoundError:  # the process had not started
        printed_bytes = b""
    lines = printed_bytes.decode("utf-8", "replace").splitlines()
    last = " | ".join(line for line in lines[-5:] if line.strip())
    printed = f"; it last printed: {last}" if last else ""
    return IsolatedError(
        f"{who} {what}{printed}; to reproduce it: passlib run {folder}",
        folder=str(folder),
        number=number,
        step=name,
        how=how,
    )


def _library(folder: Path, name: str) -> str:
    """Return the library of a pass, or all libraries if this process has not loaded it."""
    try:
        return find_backend(name).declaration.library
    except PasslibError:
        return " or ".join(path for path, _ in Reproducer.read(folder).sources)


_PAUSE: Final = 0.005
"""Seconds between two checks of whether a process has ended."""

_lock = ForkLock()
_servers: dict[int, subprocess.Popen[bytes]] = {}
"""The server of each process id: a forked process starts its own."""

_live: set[Path] = set()
"""The folders of running processes."""


def _run_forked(folder: Path, function: str, timeout: float | None) -> int | None:
    """Call ``function(folder)`` in a separate process whose output goes to ``output.txt``.

    Returns
    -------
    int or None
        The exit status, or the negative number of a signal; None after a timeout, which also ends
        the processes that the process has started.

    Raises
    ------
    PasslibError
        No process can be started.
    """
    folder = folder.absolute()  # the server may have another working directory
    for name in ("pid", "status"):
        (folder / name).unlink(missing_ok=True)
    wanted = {
        "folder": str(folder),
        "function": function,
        "environment": dict(os.environ),
        "directory": str(Path.cwd()),
    }
    server = _asked(json.dumps(wanted).encode() + b"\n")
    _live.add(folder)
    end = None if timeout is None else time.monotonic() + timeout
    try:
        while not (folder / "status").exists():
            if server.poll() is not None:
                raise PasslibError("the server of isolated processes ended; call again")
            if end is not None and time.monotonic() > end:
                _end(folder)
                return None
            time.sleep(_PAUSE)
        return int((folder / "status").read_text("utf-8"))
    except BaseException:
        # Such as Ctrl-C, which ends a hanging pass.
        _end(folder)
        raise
    finally:
        _live.discard(folder)


def end_children() -> None:
    """End the processes that other threads of this process wait for."""
    for folder in tuple(_live):
        _end(folder)


def _asked(line: bytes) -> subprocess.Popen[bytes]:
    with _lock:
        server = _servers.get(os.getpid())
        if server is None or server.poll() is not None:
            server = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.isolated"],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
            _servers.clear()
            _servers[os.getpid()] = server
        assert server.stdin is not None
        server.stdin.write(line)
        server.stdin.flush()
        return server


@atexit.register
def _stop() -> None:
    server = _servers.pop(os.getpid(), None)
    if server is not None and server.stdin is not None:
        with contextlib.suppress(OSError):
            server.stdin.close()
        server.wait()


def _end(folder: Path) -> None:
    """End the process of a folder, which may still be starting, and its children.

    Afterwards the server writes nothing more into the folder, so that the caller may remove it.
    """
    if _is_written(folder, "pid") and not (folder / "status").exists():
        number = int((folder / "pid").read_text("utf-8"))
        # A process that has just started has no group yet.
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(number, signal.SIGKILL)
        _is_written(folder, "status")


def _is_written(folder: Path, name: str) -> bool:
    """Wait until the server has written a file; return False if it never will."""
    while not (folder / name).exists():
        server = _servers.get(os.getpid())
        if not folder.exists() or server is None or server.poll() is not None:
            return False
        time.sleep(_PAUSE)
    return True


_CHILD: Final = "passlib.passes.isolated:run"


def run_isolated(
    model: Model,
    steps: Steps,
    *,
    timeout: float | None = None,
    memory: int | None = None,
    inference: Mapping[str, Any] | None = None,
) -> PipelineResult:
    """Run a pipeline in a separate process; models are passed as files.

    Parameters
    ----------
    timeout : float, optional
        In seconds.
    memory : int, optional
        Limit of the address space in bytes.
    inference : mapping, optional
        As in `Pipeline.run`.

    Raises
    ------
    IsolatedError
        The process crashed, exited, or exceeded a limit.
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
    """Run a reproducer in a separate process, which loads its libraries.

    Loading runs their code: see SECURITY.md. Nothing is written into the folder.

    Raises
    ------
    FormatError
        The reproducer is malformed, or a path leads out of its folder.
    IsolatedError, PipelineError
        As in `run_isolated`, with this folder.
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
            # The description does not fit the passes or the model.
            raise FormatError(f"{folder}: {type(error).__name__}: {error}") from error
        return _result(answer, model)


def _result(answer: Answer, model: Model) -> PipelineResult:
    path, steps = answer.value
    return PipelineResult(load_model(path, model.dialect), steps, model)


def run_child(folder: Path, function: str, timeout: float | None) -> Answer:
    """Call a function with the folder of a reproducer in a separate process.

    Parameters
    ----------
    function : str
        ``"module:name"`` of a function that calls `passlib.passes.isolated.answer`.
    timeout : float, optional
        In seconds.

    Raises
    ------
    IsolatedError
        The process crashed, exited, or timed out.
    """
    for name in ("answer", "progress"):
        (folder / name).unlink(missing_ok=True)
    status = _run_forked(folder, function, timeout)
    if status is None:
        raise failure(folder, f"timed out after {timeout:g} s", "time")
    try:
        content = (folder / "answer").read_bytes()
    except OSError:
        if status < 0:
            how = signal.Signals(-status).name
            raise failure(folder, f"crashed with signal {how}", how) from None
        how = f"exit status {status}"
        raise failure(folder, f"ended its process with {how}", how) from None
    answer = pickle.loads(content)
    assert isinstance(answer, Answer)
    return answer


def linked(
    errors: tuple[BaseException, ...], model: Model | None, folder: Path | None
) -> BaseException:
    """Return the first error, with the others as its chain of causes.

    With a folder, a `MemoryError` becomes an `IsolatedError`.
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
