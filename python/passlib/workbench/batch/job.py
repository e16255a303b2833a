"""One model of a batch, and what became of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from passlib.files.regular import is_regular
from passlib.passes import Pipeline
from passlib.passes.isolation.reproducer import sources_of
from passlib.workbench.batch.optimizing import Request
from passlib.workbench.batch.remote import is_remote
from passlib.workbench.batch.traced import digest_of


@dataclass(frozen=True)
class Job:
    """What a process is to do. It can be pickled, for processes on other machines.

    Attributes
    ----------
    model, output : str
        Paths, or URLs that fsspec opens.
    pipeline : str
        Its text.
    libraries : tuple of str
        Paths of libraries and of Python files with passes.
    request : Request
    timeout : float or None
        Seconds, after which the process is ended.
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
        """Make the job of a pipeline, with the files that have its passes; paths become absolute.

        Raises
        ------
        UnsupportedError
            A pass is a function that does not stand in a file.
        """
        given = request.libraries
        libraries = tuple(sources_of(pipeline.steps) if given is None else given)
        return cls(_place(model), _place(output), str(pipeline), libraries, request, timeout)

    @property
    def key(self) -> str:
        """What is asked for, hashed, with size and time of the model: quicker than its content."""
        facts = {**asdict(self), "timeout": None}
        if not is_remote(self.model) and is_regular(self.model):
            stat = Path(self.model).stat()
            facts["stamp"] = [stat.st_size, stat.st_mtime_ns]
        text = json.dumps(facts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _place(path: str) -> str:
    return path if is_remote(path) else str(Path(path).absolute())


@dataclass(frozen=True)
class Outcome:
    """What became of a model.

    Attributes
    ----------
    model, output : str
    status : str
        ``"done"``; ``"different"``, not saved because it computes something else; ``"failed"``.
    error : str
        What went wrong, otherwise empty.
    seconds : float
        Wall clock time.
    nodes : tuple of int
        Numbers of operators before and after; empty after a failure.
    key : str
        See `Job.key`.
    earlier : bool
        Whether it was done when the batch was started before.
    inputs, results : dict of str to str
        The sha256 of each file that the model was made of, libraries and Python files included, and
        of each that was written.

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

    def as_dict(self) -> dict[str, Any]:
        """Return the attributes, for JSON."""
        return asdict(self)

    @property
    def holds(self) -> bool:
        """Whether all files still are what they were."""
        files = {**self.inputs, **self.results}
        return bool(self.inputs) and all(digest_of(path) == files[path] for path in files)
