"""Files that are replaced together: all of them, or none, whenever the process or machine stops."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType

from passlib.files.journal import (
    Journal,
    lock,
    sync_folder,
    temporary_files,
    temporary_name,
)

__all__ = ["Unit", "durability", "free_name", "replacing"]

_durable: ContextVar[bool] = ContextVar("durable", default=True)


@contextmanager
def durability(durable: bool) -> Iterator[None]:
    """Choose whether saves inside the block wait until their files are on the disk.

    Without it a save is still whole or absent after the process was killed, but not after the
    machine lost power. ``PASSLIB_FSYNC=0`` in the environment chooses so for all saves.

    Parameters
    ----------
    durable : bool
    """
    token = _durable.set(durable)
    try:
        yield
    finally:
        _durable.reset(token)


class Unit:
    """Files that are replaced together.

    New files are written under other names in the same folders. When the block succeeds, they are
    flushed to the disk, a journal next to ``main`` notes what is to be done, and the files are
    renamed, ``main`` last. A unit of one file needs no journal. If the block raises, the new files
    are deleted, and existing ones stay unchanged.

    Parameters
    ----------
    main : path-like
        The file that leads to the others, such as the graph of a model.
        `passlib.files.journal.settle` of it finishes a unit that was interrupted.
    """

    def __init__(self, main: str | os.PathLike[str]) -> None:
        self._main = Path(os.path.realpath(main))
        self._durable = _durable.get() and os.environ.get("PASSLIB_FSYNC", "1") != "0"
        self._new: dict[Path, Path] = {}
        self._gone: list[Path] = []
        self._locks: list[int] = []

    def __enter__(self) -> Unit:
        return self

    def replace(self, target: str | os.PathLike[str]) -> Path:
        """Return an empty file to write, which becomes ``target``.

        Parameters
        ----------
        target : path-like
            Symbolic links are followed. An existing target that is not a regular file, such as a
            pipe or ``/dev/stdout``, cannot be replaced and is returned itself.

        Returns
        -------
        Path
            In the same folder, with the permissions of the old file or the default ones.

        Raises
        ------
        OSError
            The target is a folder, or its folder is missing or not writable.
        """
        final = Path(os.path.realpath(target))
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, "cannot write a file over a folder", str(target))
        if not final.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(final.parent))
        if final.exists() and not final.is_file():
            return Path(target)
        _sweep(final.parent)
        temporary = final.with_name(temporary_name())
        try:
            file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            # The user knows the target and its folder, not the temporary name.
            raise type(error)(error.errno, error.strerror, str(final.parent)) from None
        self._locks.append(file)
        self._new[final] = temporary
        # Held while the save lives: `_sweep` of another process spares a locked file.
        lock(file)
        if final.exists():
            temporary.chmod(stat.S_IMODE(final.stat().st_mode))
        return temporary

    def remove(self, target: str | os.PathLike[str]) -> None:
        """Delete a file after all others were replaced; nothing happens if there is none."""
        self._gone.append(Path(os.path.realpath(target)))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self._commit()
        finally:
            for temporary in self._new.values():
                with suppress(OSError):
                    temporary.unlink()
            for file in self._locks:
                os.close(file)

    def _commit(self) -> None:
        # Not the open descriptor: a writer may have replaced the file by another one.
        if self._durable:
            for temporary in self._new.values():
                file = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
        last = sorted(self._new.items(), key=lambda item: item[0] == self._main)
        gone = [path for path in self._gone if path not in self._new and path.is_file()]
        steps = [final for final, _ in last if final.exists() or final == self._main] + gone
        if len(steps) > 1 and {path.parent for path in (*self._new, *gone)} == {self._main.parent}:
            journal = Journal(self._main, {new: final for final, new in last}, gone)
            journal.write(durable=self._durable)
            # From here on the unit is as good as done: whoever finds the journal finishes it.
            self._new.clear()
            journal.finish(durable=self._durable)
            return
        # Files that did not exist before disturb nobody until the main file leads to them.
        for final, temporary in last:
            if final == self._main and self._durable and len(last) > 1:
                self._sync_folders(gone)
            temporary.replace(final)
        if self._durable:
            self._sync_folders(gone)
        for path in gone:
            path.unlink(missing_ok=True)

    def _sync_folders(self, gone: list[Path]) -> None:
        for folder in {path.parent for path in (*self._new, *gone)}:
            sync_folder(folder)


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new empty file to write, which becomes ``target`` when the block succeeds.

    If the block raises, the new file is deleted and an existing one stays unchanged. Arrays that
    are mapped from the old file keep their content, so a model can be saved over itself.

    Parameters
    ----------
    target : path-like
        See `Unit.replace`, which also lists the errors.

    Yields
    ------
    Path
    """
    with Unit(target) as unit:
        yield unit.replace(target)


def free_name(path: Path, suffix: str, taken: Collection[Path] = ()) -> Path:
    """Choose a name next to a file under which there is no file yet.

    Parameters
    ----------
    path : Path
    suffix : str
        Without a point: ``x.onnx`` leads to ``x.onnx.data``, ``x.onnx.1.data`` and so on.
    taken : collection of Path
        Names that are about to be used.
    """
    name = path.with_name(f"{path.name}.{suffix}")
    number = 0
    while name.exists() or name in taken:
        number += 1
        name = path.with_name(f"{path.name}.{number}.{suffix}")
    return name


def _sweep(folder: Path) -> None:
    """Delete the new files of saves that were killed before their journal."""
    noted: set[Path] | None = None
    with suppress(OSError):
        for path in temporary_files(folder):
            if noted is None:
                noted = Journal.temporaries(folder)
            if path in noted:
                continue
            with suppress(OSError), path.open("r+b") as file:
                if lock(file.fileno()):
                    path.unlink()
