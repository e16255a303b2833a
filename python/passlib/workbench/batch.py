"""Batches: runs a pipeline on many models, each in a separate process."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from passlib.errors import FormatError, PasslibError, short_repr
from passlib.files.installation import get_include
from passlib.files.optional import require
from passlib.files.regular import is_regular, open_regular, read_regular
from passlib.passes import Pipeline
from passlib.passes.isolated import Progress, answer
from passlib.passes.isolation import (
    Reproducer,
    end_children,
    linked,
    reproducer_folder,
    run_child,
    sources_of,
)
from passlib.workbench.optimizing import Request, optimize


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return "://" in path


def fetch(url: str, folder: Path) -> Path:
    """Download a URL into a folder; raises PasslibError without fsspec, OSError if it fails."""
    fsspec = require("fsspec", extra="fsspec")
    target = folder / url.rstrip("/").rpartition("/")[2]
    with fsspec.open(url, "rb") as source:
        target.write_bytes(source.read())
    return target


def store(folder: Path, url: str) -> None:
    """Upload the files of a folder next to a URL; raises as `fetch` does."""
    fsspec = require("fsspec", extra="fsspec")
    place = url.rpartition("/")[0]
    for path in sorted(folder.iterdir()):
        with fsspec.open(f"{place}/{path.name}", "wb") as target:
            target.write(path.read_bytes())


def trace_reads(folder: Path) -> None:
    """Record the files that this process opens for reading and the code that it runs.

    These are the files of the model, and the modules that a Python file with passes imports.
    Files of Python and passlib themselves, and those in which a save looks for other users of its
    data, are omitted.
    """
    notes = os.open(folder / "read", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    skipped = tuple(
        os.path.join(os.path.abspath(place), "")  # noqa: PTH100, PTH118 (quick, and links stay)
        for place in (
            sys.prefix,
            sys.base_prefix,
            Path(get_include()).parent,
            Path(__file__).parents[1],
            *("/proc", "/sys", "/dev"),
            folder,
            tempfile.gettempdir() + "/passlib-",
        )
    )
    seen: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if not isinstance(name, (str, bytes)) or flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event == "passlib.search":
            seen.add(os.path.abspath(arguments[0]))  # noqa: PTH100
            return
        elif event == "exec":
            name = getattr(arguments[0], "co_filename", "")
        else:
            return
        path = os.path.abspath(os.fsdecode(name))  # noqa: PTH100
        if path not in seen and not path.startswith(skipped):
            seen.add(path)
            os.write(notes, json.dumps(path).encode() + b"\n")

    sys.addaudithook(note)


def files_read(folder: Path) -> list[str]:
    """Return the files that the process of a folder has read and that still exist."""
    try:
        lines = (folder / "read").read_bytes().splitlines()
    except FileNotFoundError:
        return []
    return [path for path in map(json.loads, lines) if is_regular(path)]


def _digests(paths: Iterable[str]) -> dict[str, str]:
    return {path: digest_of(path) for path in dict.fromkeys(paths)}


def digest_of(path: str) -> str:
    """Return the sha256 of a file or URL; empty if it cannot be read."""
    try:
        if is_remote(path):
            with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
                return digest_of(str(fetch(path, Path(folder))))
        found = hashlib.sha256()
        with open_regular(path) as file:
            while part := file.read(1 << 20):
                found.update(part)
        return found.hexdigest()
    except (OSError, FormatError):
        return ""


@dataclass(frozen=True)
class Job:
    """The work of one process. It can be pickled, for processes on other machines.

    Attributes
    ----------
    model, output : str
        Paths, or URLs for fsspec.
    libraries : tuple of str
        Paths of libraries and of Python files with passes.
    timeout : float or None
        In seconds.
    """

    model: str
    output: str
    pipeline: str
    libraries: tuple[str, ...] = ()
    request: Request = field(default_factory=Request)
    timeout: float | None = None

    @classmethod
    def of(
        cls, pipeline: Pipeline, model: str, output: str, request: Request, timeout: float | None
    ) -> Job:
        """Create the job of a pipeline, with the files of its passes and absolute paths.

        Raises
        ------
        UnsupportedError
            A pass is a function without a source file.
        """
        given = request.libraries
        libraries = tuple(sources_of(pipeline.steps) if given is None else given)
        return cls(_place(model), _place(output), str(pipeline), libraries, request, timeout)

    @property
    def key(self) -> str:
        """Hash of the job and of the model's size and time, which are cheaper than its content."""
        facts = {**asdict(self), "timeout": None}
        if not is_remote(self.model) and is_regular(self.model):
            stat = Path(self.model).stat()
            facts["stamp"] = [stat.st_size, stat.st_mtime_ns]
        text = json.dumps(facts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _place(path: str) -> str:
    return path if is_remote(path) else str(Path(path).absolute())


@short_repr
@dataclass(frozen=True)
class Outcome:
    """The outcome of one model.

    Attributes
    ----------
    status : str
        ``"done"``; ``"different"``, not saved because its outputs changed; or ``"failed"``.
    error : str
        Empty after success.
    seconds : float
        Wall clock time.
    nodes : tuple of int
        Numbers of operators before and after; empty after a failure.
    key : str
        Hash of the job.
    earlier : bool
        Whether an earlier run of the batch did the work.
    inputs, results : dict of str to str
        The sha256 of each file that was read, including libraries and Python files, and of each
        file that was written.
    warnings : tuple of str
        What is doubtful about the model, such as an operator that ONNX does not have.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (outcome,) = pl.workbench.batch(["nowhere.onnx"], pl.Pipeline("removeNoOps"), folder)
    >>> outcome.status, "nowhere.onnx" in outcome.model
    ('failed', True)
    """

    model: str
    output: str
    status: str
    error: str
    seconds: float
    nodes: tuple[int, ...]
    key: str
    earlier: bool = False
    inputs: dict[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes for JSON; ``nodes`` with names, or None."""
        nodes = dict(zip(("before", "after"), self.nodes, strict=True)) if self.nodes else None
        return {**asdict(self), "nodes": nodes, "warnings": list(self.warnings)}

    @property
    def holds(self) -> bool:
        """Whether no file has changed since."""
        files = {**self.inputs, **self.results}
        return bool(self.inputs) and all(digest_of(path) == files[path] for path in files)


class Journal:
    """The outcomes of a batch as JSON lines, from which an interrupted batch continues."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._whole = True

    def read(self) -> Mapping[str, Outcome]:
        """Return the last outcome of each key; ignore damaged lines."""
        try:
            content = read_regular(self._path)
        except FileNotFoundError:
            return {}
        self._whole = content.endswith(b"\n") or not content
        outcomes = filter(None, map(_parsed, content.split(b"\n")))
        return {outcome.key: outcome for outcome in outcomes}

    def add(self, outcome: Outcome) -> None:
        """Append and flush one line."""
        line = json.dumps(outcome.as_dict())
        try:
            with self._path.open("a", encoding="ascii") as file:
                file.write(("" if self._whole else "\n") + line + "\n")
        except OSError as error:
            error.filename = str(self._path)
            raise
        self._whole = True


def _parsed(line: bytes) -> Outcome | None:
    """Return the outcome of a line; None if the line is damaged."""
    try:
        facts = json.loads(line)
        nodes = (facts["nodes"]["before"], facts["nodes"]["after"]) if facts["nodes"] else ()
        warnings = tuple(facts.get("warnings", ()))
        outcome = Outcome(**{**facts, "nodes": nodes, "earlier": True, "warnings": warnings})
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    texts = [outcome.model, outcome.output, outcome.status, outcome.error, outcome.key, *warnings]
    for files in (outcome.inputs, outcome.results):
        if not isinstance(files, dict):
            return None
        texts += [*files, *files.values()]
    is_right = all(isinstance(text, str) for text in texts)
    numbers = (outcome.seconds, *outcome.nodes)
    is_right = is_right and all(isinstance(number, (int, float)) for number in numbers)
    return outcome if is_right else None


def batch(
    paths: Sequence[str | os.PathLike[str]],
    pipeline: Pipeline | Callable[[str], Pipeline],
    output: str | os.PathLike[str],
    executor: Executor | None = None,
    *,
    jobs: int = 1,
    timeout: float | None = None,
    request: Request | Callable[[str], Request] | None = None,
    progress: Callable[[Outcome, int], None] | None = None,
) -> list[Outcome]:
    """Run a pipeline on many models, each in a separate process, and save the results.

    A damaged model, or one on which a pass crashes or hangs, does not stop the others. The outcome
    of each model is a line of ``batch.jsonl`` in the output folder. A repeated batch skips the
    models in this file, unless the content of the model, the libraries, the Python files or the
    results has changed, or the request.

    Parameters
    ----------
    paths : sequence of path-like
        Models; also URLs for fsspec, of models in one file.
    pipeline : Pipeline or callable
        A function returns the one of a path.
    output : path-like
        A folder, or a URL.
    executor : concurrent.futures.Executor, optional
        By default threads, each of which waits for its process. Other machines need the same
        files. For dask, pass ``Client(address).get_executor()``.
    jobs : int
        Number of concurrent processes without an executor.
    timeout : float, optional
        Seconds for each model.
    request : Request or callable, optional
        A function returns the one of a path. ``dump`` and ``report`` are folders here.
    progress : callable, optional
        Called with each outcome and the number of remaining models.

    Returns
    -------
    list of Outcome
        In the order of the models.

    Examples
    --------
    >>> import tempfile
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (path, *_) = pl.Model(pl.sym.exp(x) + pl.sym.exp(x)).save(f"{folder}/net")
    ...     pipeline = pl.Pipeline("mergeEqualNodes")
    ...     found = pl.workbench.batch([path], pipeline, f"{folder}/out")
    >>> [outcome.status for outcome in found]
    ['done']
    """
    folder = os.fspath(output)
    journal = Journal(Path("" if is_remote(folder) else folder, "batch.jsonl"))
    if not is_remote(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    wanted = [
        Job.of(
            pipeline(model) if callable(pipeline) else pipeline,
            *(model, target),
            _own(request(model) if callable(request) else request or Request(), name),
            timeout,
        )
        for model, name, target in _targets([os.fspath(path) for path in paths], folder)
    ]
    known = journal.read()
    outcomes = {key: known[key] for key in (job.key for job in wanted) if key in known}
    outcomes = {key: outcome for key, outcome in outcomes.items() if outcome.holds}
    left = [job for job in wanted if job.key not in outcomes]
    own = executor is None
    pool = executor or ThreadPoolExecutor(max(jobs, 1))
    try:
        waiting: dict[Future[Outcome], Job] = {pool.submit(run_job, job): job for job in left}
        for done, future in enumerate(as_completed(waiting), 1):
            job = waiting[future]
            outcome = _outcome(job, future)
            outcomes[job.key] = outcome
            journal.add(outcome)
            if progress is not None:
                progress(outcome, len(left) - done)
    finally:
        if own:
            pool.shutdown(wait=False, cancel_futures=True)
            end_children()
    return [outcomes[job.key] for job in wanted]


def dask_executor(address: str) -> Executor:
    """Return the executor of a dask scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    PasslibError
        dask is not installed, or no scheduler answers.
    """
    distributed = require("distributed", extra="dask")
    try:
        client = distributed.Client(address, timeout=30)
    except (OSError, TimeoutError, ValueError) as error:
        raise PasslibError(f"no dask scheduler answers at {address}: {error}") from error
    executor: Executor = client.get_executor()
    return executor


def _targets(paths: list[str], folder: str) -> list[tuple[str, str, str]]:
    """Return each model with a unique name and the path of its result."""
    names = [path.rstrip("/").rpartition("/")[2] for path in paths]
    if len(set(names)) < len(set(paths)):
        common = os.path.commonpath([Path(path).absolute().parent for path in paths])
        names = [str(Path(path).absolute().relative_to(common)) for path in paths]
    found = []
    for path, name in dict(zip(paths, names, strict=True)).items():
        target = f"{folder.rstrip('/')}/{name}"
        if not is_remote(folder):
            Path(target).parent.mkdir(parents=True, exist_ok=True)
        found.append((path, name, target))
    return found


def _own(request: Request, name: str) -> Request:
    """Return the request of one model, with a separate dump folder and report."""
    facts = dict(vars(request))
    if request.dump is not None:
        facts["dump"] = str(Path(request.dump) / name)
    if request.report is not None:
        facts["report"] = str(Path(request.report) / f"{name}.html")
    return Request(**facts)


def _outcome(job: Job, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # such as an executor's error after the loss of a machine
        return Outcome(job.model, job.output, "failed", _text(error), 0, (), job.key)


def run_job(job: Job) -> Outcome:
    """Run one job in a separate process; turn errors into an outcome."""
    key, start = job.key, time.perf_counter()
    read, results, warnings = [job.model, *job.libraries], list[str](), tuple[str, ...]()
    try:
        facts = run_isolated_job(job, read)
    except Exception as error:
        status, text, nodes = "failed", _text(error), ()
    else:
        status, text = "done", ""
        nodes, results = tuple(facts["nodes"].values()), facts["files"]
        warnings = tuple(facts["warnings"])
        if facts["differences"]:
            status, text = "different", "; ".join(facts["differences"])
    inputs = {path: found for path, found in _digests(read).items() if path not in results}
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(
        *(job.model, job.output, status, text, seconds, nodes, key),
        inputs={path: digest for path, digest in inputs.items() if digest},
        results=_digests(results),
        warnings=warnings,
    )


def run_isolated_job(job: Job, read: list[str] | None = None) -> dict[str, Any]:
    """Run one job in a separate process; return the result of `optimize`.

    Parameters
    ----------
    read : list of str, optional
        Receives the files that the process read, even after a failure.

    Raises
    ------
    IsolatedError
        The process crashed, exited or timed out; its folder stays for ``passlib run``.
    PasslibError
        As in `optimize`.
    """
    with reproducer_folder() as folder:
        model, output = job.model, job.output
        if is_remote(model):
            model = str(fetch(model, folder))
        if is_remote(output):
            (folder / "out").mkdir()
            output = str(folder / "out" / output.rpartition("/")[2])
        request = job.request
        overrides = request.libraries is None or request.overrides
        Reproducer.write(folder, model, job.libraries, job.pipeline, {}, None, overrides=overrides)
        path = str(Path(model).absolute())
        (folder / "job").write_bytes(pickle.dumps((path, output, request)))
        try:
            answer = run_child(folder, f"{__name__}:run_job_of", job.timeout)
        finally:
            if read is not None:
                read += files_read(folder)
        if answer.errors:
            raise linked(answer.errors, None, None)
        found: dict[str, Any] = answer.value
        if is_remote(job.output):
            store(folder / "out", job.output)
            place = job.output.rpartition("/")[0]
            found["files"] = [f"{place}/{Path(path).name}" for path in found["files"]]
        return {**found, "model": job.model, "output": job.output}


def check_isolated(pipeline: Pipeline, model: str, request: Request, timeout: float | None) -> None:
    """Load the libraries of a request and check a pipeline, in a separate process.

    Parameters
    ----------
    model : str
        Path of the model, for the reproducer.
    timeout : float or None
        In seconds.

    Raises
    ------
    IsolatedError
        A library ended the process.
    PasslibError
        A library cannot be loaded, or the pipeline is invalid, see `Pipeline.check`.
    """
    with reproducer_folder() as folder:
        libraries, overrides = request.libraries or (), request.overrides
        Reproducer.write(folder, model, libraries, str(pipeline), {}, None, overrides=overrides)
        answer = run_child(folder, f"{__name__}:check_pipeline_of", timeout)
        if answer.errors:
            raise linked(answer.errors, None, None)


def run_job_of(folder: Path) -> None:
    """Run the job of a folder, in a separate process."""
    trace_reads(folder)

    def work(reproducer: Reproducer) -> dict[str, Any]:
        reproducer.load_libraries()
        path, output, request = pickle.loads((folder / "job").read_bytes())
        return optimize(path, output, Pipeline(reproducer.pipeline), request, [Progress(folder)])

    answer(folder, work)


def check_pipeline_of(folder: Path) -> None:
    """Load the libraries of a folder and check its pipeline, in a separate process."""

    def work(reproducer: Reproducer) -> None:
        reproducer.load_libraries()
        Pipeline(reproducer.pipeline).check()

    answer(folder, work)


def _text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
    known = isinstance(error, (PasslibError, OSError))
    return str(error) if known else f"{type(error).__name__}: {error}"
