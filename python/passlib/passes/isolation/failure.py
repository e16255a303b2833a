"""What ends a process of its own, and the folder that is left of it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from passlib.errors import PassError, PasslibError, listed
from passlib.library import find_backend
from passlib.passes.isolation.reproducer import Reproducer

_LINES: Final = 5
"""Lines of output in a message."""


class IsolatedError(PassError):
    """A pass ended its process, or did not end.

    Attributes
    ----------
    folder : str
        The reproducer, which ``passlib run`` plays back.
    number : int
        Place of the pass among the steps that ran, from 1; 0 before the first one.
    step : str
        Name of the pass; empty before the first one.
    how : str
        What ended it, the same for each model: ``"SIGSEGV"``, ``"exit status 7"``, ``"time"``,
        ``"memory"``.
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
    """Create a folder that stays after an `IsolatedError` and is removed otherwise."""
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
    """Return the error that says which pass of a reproducer ended its process.

    Parameters
    ----------
    folder : Path
    what : str
        The rest of the sentence whose subject is the pass.
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
    except FileNotFoundError:  # the process had not even begun
        printed_bytes = b""
    lines = printed_bytes.decode("utf-8", "replace").splitlines()
    last = " | ".join(line for line in lines[-_LINES:] if line.strip())
    printed = f"; it last printed: {last}" if last else ""
    return IsolatedError(
        f"{who} {what}{printed}; to play it back: passlib run {folder}",
        folder=str(folder),
        number=number,
        step=name,
        how=how,
    )


def _library(folder: Path, name: str) -> str:
    """Return the library of a pass, which this process need not have loaded itself."""
    try:
        return find_backend(name).declaration.library
    except PasslibError:
        return " or ".join(path for path, _ in Reproducer.read(folder).sources)
