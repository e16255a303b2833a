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
    alone_in,
    create_temporary,
    is_temporary,
    lock,
    settle,
    sync_folder,
    temporary_files,
)
from passlib.files.regular import check_path

__all__ = ["Unit", "durability", "free_name", "replacing"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which come without the name of the file."""

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
        self._fresh: set[Path] = set()
        self._gone: list[Path] = []
        self._locks: list[int] = []

    def __enter__(self) -> Unit:
        return self

    def replace(self, target: str | os.PathLike[str], *, fresh: bool = False) -> Path:
        """Return an empty file to write, which becomes ``target``.

        Parameters
        ----------
        target : path-like
            Symbolic links are followed.
        fresh : bool
            Whether the name was chosen because nothing has it, see `free_name`. If another save
            chose it too, the later one of them fails: its main file would lead to the other's
            data.

        Returns
        -------
        Path
            In the same folder, with the permissions and the owner of the old file, as far as the
            user may give a file away, or the default ones.

        Raises
        ------
        FormatError
            The target is a pipe, a device or a socket.
        OSError
            The target is a folder, or its folder is missing or not writable.
        """
        final = Path(os.path.realpath(target))
        if final.is_dir():
            raise IsADirectoryError(errno.EISDIR, "cannot write a file over a folder", str(target))
        if not final.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder does not exist", str(final.parent))
        check_path(target, writing=True)
        _sweep(final.parent)
        # Locked while the save lives: `_sweep` of another process spares it.
        temporary, file = create_temporary(final.parent)
        self._locks.append(file)
        self._new[final] = temporary
        if fresh:
            self._fresh.add(final)
        if final.exists():
            _take_over(file, final.stat())
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
            elif isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
                raise type(error)(error.errno, error.strerror, str(self._main)) from error
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
        with alone_in(self._main.parent):
            if len(self._new) + len(self._gone) > 1:
                settle(self._main)
            for final in self._fresh:
                if final.exists():
                    what = "another save chose the same name for its data; save again"
                    raise FileExistsError(errno.EEXIST, what, str(final))
            self._put_in_place()

    def _put_in_place(self) -> None:
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
        See `Unit.replace`, which also lists the errors. A pipe or a device, such as
        ``/dev/stdout``, cannot be replaced and is yielded itself.

    Yields
    ------
    Path
    """
    if is_temporary(Path(target)) and Path(target).is_file():
        yield Path(target)  # a part of a unit, which replaces the target itself
        return
    if _is_special(Path(target)):
        yield Path(target)
        return
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


def _is_special(path: Path) -> bool:
    """Whether there is a pipe, a device or a socket at a path."""
    return path.exists() and not path.is_dir() and not path.is_file()


def _take_over(file: int, before: os.stat_result) -> None:
    """Give a new file the owner and the permissions of the one that it replaces."""
    mine = os.fstat(file)
    for user, group in ((before.st_uid, before.st_gid), (-1, before.st_gid)):
        if (user, group) in ((mine.st_uid, mine.st_gid), (-1, mine.st_gid)):
            break
        with suppress(OSError):  # only root gives files away
            os.fchown(file, user, group)
            break
    os.fchmod(file, stat.S_IMODE(before.st_mode))


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
