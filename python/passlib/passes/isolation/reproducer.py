"""The folder by which a process gets what it runs, and which plays a failure back."""

from __future__ import annotations

import hashlib
import inspect
import json
import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np

from passlib.errors import FormatError, LoadError, UnsupportedError
from passlib.files.installation import checked_version
from passlib.files.regular import read_regular
from passlib.library import find_backend, load
from passlib.library.backends import find_pipeline
from passlib.library.pipeline import Steps, flat
from passlib.library.python import PythonPass
from passlib.model import Model
from passlib.model import load as load_model
from passlib.model.model import INFERENCE
from passlib.passes.files import load_file
from passlib.passes.instruments import save_part

_FACTS: Final = "reproducer.json"


@dataclass(frozen=True)
class Reproducer:
    """What a process is to run, as it stands in ``reproducer.json`` of a folder.

    Attributes
    ----------
    model : str
        Path in the folder; an absolute one is for a process that this one starts.
    dialect : str
        Empty for a model that is to be recognised.
    pipeline : str
        Its text.
    sources : list of (str, str)
        Paths of libraries, and of Python files with passes, each with its sha256.
    inference : dict
        What `Pipeline.run` is given for inference.
    memory : int or None
        Bytes of address space that the process may have.
    path : list of str
        Where Python finds modules.
    versions : dict of str to str
    """

    model: str
    dialect: str
    pipeline: str
    sources: list[tuple[str, str]]
    inference: dict[str, Any] = field(default_factory=dict)
    memory: int | None = None
    path: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def write(
        cls,
        folder: Path,
        model: Model | str,
        sources: Iterable[str],
        text: str,
        inference: Mapping[str, Any],
        memory: int | None,
    ) -> Reproducer:
        """Write a folder that holds everything but the libraries themselves.

        A model that is a path is not copied: the folder gets a link to its folder. ``sources`` are
        paths of libraries and Python files.

        Raises
        ------
        UnsupportedError
            An argument is no JSON.
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
        )
        made.store(folder)
        return made

    def store(self, folder: Path) -> None:
        """Write the description into a folder.

        Raises
        ------
        UnsupportedError
            An argument is no JSON.
        """
        try:
            content = json.dumps(asdict(self), indent=2)
        except TypeError as error:
            raise UnsupportedError(f"isolate=True: an argument is no JSON: {error}") from error
        (folder / _FACTS).write_text(content, "utf-8")

    @classmethod
    def read(cls, folder: Path) -> Reproducer:
        """Read what a folder holds.

        Raises
        ------
        FormatError
            It is no reproducer.
        OSError
            There is no such folder.
        """
        try:
            content = read_regular(folder / _FACTS)
        except OSError as error:
            what = f"this is no reproducer, a folder with {_FACTS} that an isolated pass left"
            raise type(error)(error.errno, what, str(folder)) from error
        try:
            made = cls(**json.loads(content))
        except (ValueError, TypeError, RecursionError) as error:
            raise FormatError(f"{folder / _FACTS}: this is no reproducer: {error}") from error
        wrong = made.wrong_member()
        if wrong:
            raise FormatError(f"{folder / _FACTS}: {wrong!r} is of a wrong type")
        return made

    def wrong_member(self) -> str:
        """Return the name of the first member that is not of its type; empty if there is none."""
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
        }
        return next((name for name, is_right in checks.items() if not is_right), "")

    def checked_place(self, folder: Path) -> Path:
        """Return the path of the model, of a reproducer that somebody else may have written.

        Raises
        ------
        FormatError
            A path leads out of the folder, or one of a library is not absolute.
        """
        place = PurePosixPath(self.model)
        if place.is_absolute() or ".." in place.parts:
            raise FormatError(f"{folder / _FACTS}: the path {self.model!r} leads out of the folder")
        for path, _ in self.sources:
            if not PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise FormatError(f"{folder / _FACTS}: {path!r} is no absolute path without '..'")
        return (folder / self.model).absolute()

    def load(self, folder: Path) -> Model:
        """Load the libraries, and return the model; raises as `load_libraries` does."""
        self.load_libraries()
        return load_model(folder / self.model, self.dialect or None)

    def load_libraries(self) -> None:
        """Load the libraries, and the files with passes.

        Raises
        ------
        LoadError
            A library is another one than it was, or cannot be loaded.
        """
        for path, digest in self.sources:
            if _digest(path) != digest:
                raise LoadError(f"{path} is not the file that it was (sha256 {digest})")
            if path.endswith(".py"):
                load_file(path)
            else:
                load(path, verbose=False)


def sources_of(steps: Steps) -> list[str]:
    """Return the files that have the passes of a pipeline.

    Raises
    ------
    UnsupportedError
        A pass is a function that does not stand in a file.
    """
    return sorted({_source(step.name) for step in flat(steps) if not find_pipeline(step.name)})


def _source(name: str) -> str:
    """Return the file that has a pass."""
    backend = find_backend(name)
    if backend.library is not None:
        return backend.library.path
    assert isinstance(backend, PythonPass)
    try:
        path = inspect.getsourcefile(inspect.unwrap(backend.body))
    except TypeError:
        path = None
    if path is None or not Path(path).is_file():
        raise UnsupportedError(
            f"isolate=True: {backend.described} stands in no file, which another process could load"
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
