"""Batches: one process a model, on this machine or on others."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final

from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.passes import Pipeline
from passlib.passes.isolation import (
    Reproducer,
    end_children,
    linked,
    reproducer_folder,
    run_child,
)
from passlib.workbench.batch.job import Job, Outcome
from passlib.workbench.batch.journal import Journal
from passlib.workbench.batch.optimizing import Request
from passlib.workbench.batch.remote import fetch, is_remote, store
from passlib.workbench.batch.traced import digests, files_read

_CHILD: Final = "passlib.workbench.batch.child"
_CHECK: Final = "passlib.workbench.batch.checked"
_JOURNAL: Final = "batch.jsonl"


def batch(
    paths: Sequence[str | os.PathLike[str]],
    pipeline: Pipeline,
    output: str | os.PathLike[str],
    executor: Executor | None = None,
    *,
    jobs: int = 1,
    timeout: float | None = None,
    request: Request | None = None,
    progress: Callable[[Outcome, int], None] | None = None,
) -> list[Outcome]:
    """Run a pipeline on many models, each in a process of its own, and save the results.

    A model that is damaged, or on which a pass crashes or hangs, does not stop the others. What
    became of each stands in ``batch.jsonl`` of the folder, a line each. When the batch is started
    again, models stand there that failed or were done, and are left out unless what they were made
    of, the libraries and Python files, the results, or what is asked for changed since, by content.

    Parameters
    ----------
    paths : sequence of path-like
        Models; also URLs that fsspec opens, of models that are one file.
    pipeline : Pipeline
    output : path-like
        A folder, or a URL.
    executor : concurrent.futures.Executor, optional
        Where the jobs run; by default threads, each waiting for its process. On other machines
        the same files must be there; dask's is ``Client(address).get_executor()``.
    jobs : int
        How many run at a time without an executor.
    timeout : float, optional
        Seconds for each model.
    request : Request, optional
        What is asked for besides. Paths of ``dump`` and ``report`` are folders here.
    progress : callable, optional
        Called with each outcome, and the number of those that are left.

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
    journal = Journal(Path(_JOURNAL) if is_remote(folder) else Path(folder) / _JOURNAL)
    if not is_remote(folder):
        Path(folder).mkdir(parents=True, exist_ok=True)
    wanted = [
        Job.of(pipeline, model, target, _own(request or Request(), name), timeout)
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
    """Return an executor of a dask scheduler.

    Parameters
    ----------
    address : str
        Such as ``tcp://10.0.0.1:8786``.

    Raises
    ------
    PasslibError
        dask is not installed, or nothing answers there.
    """
    distributed = require("distributed", extra="dask")
    try:
        client = distributed.Client(address, timeout=30)
    except (OSError, TimeoutError, ValueError) as error:
        raise PasslibError(f"no dask scheduler answers at {address}: {error}") from error
    executor: Executor = client.get_executor()
    return executor


def _targets(paths: list[str], folder: str) -> list[tuple[str, str, str]]:
    """Return each model with a name of its own, and the path of its result."""
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
    """Return the request of one model, with its own folder and page."""
    facts = dict(vars(request))
    if request.dump is not None:
        facts["dump"] = str(Path(request.dump) / name)
    if request.report is not None:
        facts["report"] = str(Path(request.report) / f"{name}.html")
    return Request(**facts)


def _outcome(job: Job, future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except Exception as error:  # what an executor raises when a machine is gone
        return Outcome(job.model, job.output, "failed", _text(error), 0, (), job.key)


def run_job(job: Job) -> Outcome:
    """Do one job in a process of its own; errors become an outcome."""
    key, start = job.key, time.perf_counter()
    read, results = [job.model, *job.libraries], list[str]()
    try:
        facts = run_isolated_job(job, read)
    except Exception as error:
        status, text, nodes = "failed", _text(error), ()
    else:
        status, text = "done", ""
        nodes, results = tuple(facts["nodes"]), facts["files"]
        if facts["differences"]:
            status, text = "different", "; ".join(facts["differences"])
    inputs = {path: found for path, found in digests(read).items() if path not in results}
    seconds = round(time.perf_counter() - start, 3)
    return Outcome(
        *(job.model, job.output, status, text, seconds, nodes, key),
        inputs={path: digest for path, digest in inputs.items() if digest},
        results=digests(results),
    )


def run_isolated_job(job: Job, read: list[str] | None = None) -> dict[str, Any]:
    """Do one job in a process of its own.

    Parameters
    ----------
    job : Job
    read : list of str, optional
        Gets the files that the process read, however it ends.

    Returns
    -------
    dict
        As of `passlib.workbench.batch.optimize`.

    Raises
    ------
    IsolatedError
        The process crashed, exited or took too long; its folder stays for ``passlib run``.
    PasslibError
        As without a process of its own.
    """
    with reproducer_folder() as folder:
        model, output = job.model, job.output
        if is_remote(model):
            model = str(fetch(model, folder))
        if is_remote(output):
            (folder / "out").mkdir()
            output = str(folder / "out" / output.rpartition("/")[2])
        Reproducer.write(folder, model, job.libraries, job.pipeline, {}, None)
        path = str(Path(model).absolute())
        (folder / "job").write_bytes(pickle.dumps((path, output, job.request)))
        try:
            answer = run_child(folder, _CHILD, job.timeout)
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
    """Load the libraries of a request and check a pipeline, in a process of its own.

    Parameters
    ----------
    pipeline : Pipeline
    model : str
        Is played back with a reproducer.
    request : Request
    timeout : float or None
        Seconds.

    Raises
    ------
    IsolatedError
        A library ended the process.
    PasslibError
        A library cannot be loaded, or as by `Pipeline.check`.
    """
    with reproducer_folder() as folder:
        Reproducer.write(folder, model, request.libraries or (), str(pipeline), {}, None)
        answer = run_child(folder, _CHECK, timeout)
        if answer.errors:
            raise linked(answer.errors, None, None)


def _text(error: BaseException) -> str:
    known = isinstance(error, (PasslibError, OSError))
    return str(error) if known else f"{type(error).__name__}: {error}"
