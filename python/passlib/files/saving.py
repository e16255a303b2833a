"""Saves: new files are written beside the old ones and take their places, the main file last."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any

import passlib._core as _core
from passlib.errors import PasslibError
from passlib.files.regular import check_path
from passlib.files.stamps import is_whole, stamp, stamp_path
from passlib.files.temporary import (
    alone_in,
    create_temporary,
    is_temporary,
    lock,
    new_name,
    own_prefix,
)

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which come without the name of the file."""

_LONGEST_NAME = 255
"""In bytes, on the file systems of Linux."""

_durable: ContextVar[bool] = ContextVar("durable", default=True)
_sources: ContextVar[Sequence[Any]] = ContextVar("sources", default=())


@contextmanager
def written_from(arrays: Iterable[Any]) -> Iterator[None]:
    """Check the files that arrays are mapped from, now and before a save in the block replaces any.

    Raises
    ------
    FormatError
        Such a file was changed after it was mapped.
    """
    arrays = list(arrays)
    _core.check_files(arrays)
    token = _sources.set(arrays)
    try:
        yield
    finally:
        _sources.reset(token)


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


class Save:
    """The files of one save.

    New files are written under hidden names in the same folders. When the block succeeds, they
    are flushed to the disk and renamed, ``main`` last. If the block or a rename raises, the new
    files are deleted and existing ones are as before. What a killed save leaves is deleted by the
    next save of the same main file, and read by nobody.

    Parameters
    ----------
    main : path-like
        The file that leads to the others, such as the graph of a model.
    bound : bool
        Whether the other files have fixed names, so that they cannot be replaced by the rename of
        the main file. A stamp (`passlib.files.stamps`) lets readers recognise the state between.
    left : callable, optional
        Return the files that nobody needs once the main file is in place; they are deleted.

    Attributes
    ----------
    main : Path
    """

    def __init__(
        self,
        main: str | os.PathLike[str],
        *,
        bound: bool = False,
        left: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self.main = Path(os.path.realpath(main))
        self._bound = bound
        self._left = left
        self._durable = _durable.get() and os.environ.get("PASSLIB_FSYNC", "1") != "0"
        self._new: dict[Path, Path | None] = {}
        self._free: set[Path] = set()
        self._temporary: list[Path] = []
        self._locks: list[int] = []

    def __enter__(self) -> Save:
        return self

    def replace(self, target: str | os.PathLike[str], *, free: bool = False) -> Path:
        """Return an empty file to write, which becomes ``target``.

        Parameters
        ----------
        target : path-like
            Symbolic links are followed.
        free : bool
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
        if final in self._new:
            what = "these would be two files of one name"
            raise FileExistsError(errno.EEXIST, what, str(target))
        if final.parent not in {other.parent for other in self._new} and _remains(
            final.parent, self.main
        ):
            with alone_in(final.parent):
                # Files that an interrupted save left half replaced are needed until this one ends.
                if is_whole(self.main):
                    self._sweep(final.parent)
        temporary, file = self._create(final.parent)
        self._new[final] = temporary
        if free:
            self._free.add(final)
        if final.exists():
            _take_over(file, final.stat())
        return temporary

    def remove(self, target: str | os.PathLike[str]) -> None:
        """Delete a file together with the replacement of the others, if there is one."""
        self._new.setdefault(Path(os.path.realpath(target)), None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                _core.check_files(_sources.get())
                self._commit()
        except OSError as raised:
            error = raised
            raise
        finally:
            if isinstance(error, OSError) and error.errno in _FULL and error.filename is None:
                error.filename = str(self.main)
            for temporary in self._temporary:
                with suppress(OSError):
                    temporary.unlink()
            for file in self._locks:
                os.close(file)

    def _commit(self) -> None:
        if self._durable:
            # Not the open descriptors: a writer may have replaced a file by another one.
            for temporary in filter(None, self._new.values()):
                _sync(temporary)
        with alone_in(self.main.parent):
            for final in self._free:
                if final.exists():
                    what = "another save chose the same name for its data; save again"
                    raise FileExistsError(errno.EEXIST, what, str(final))
            self._put_in_place()
            for folder in {final.parent for final in self._new}:
                self._sweep(folder)
            with suppress(OSError, PasslibError):  # the next save tries again
                for path in self._left():
                    path.unlink()

    def _put_in_place(self) -> None:
        files = [(final, made) for final, made in self._new.items() if made or final.exists()]
        files.sort(key=lambda each: each[0] == self.main)
        whole = is_whole(self.main)
        stamped = stamp_path(self.main)
        done: list[tuple[Path, Path | None]] = []
        try:
            if self._bound and len(files) > 1 and self.main.exists():
                self._write(stamped, stamp(self.main, files))
            for final, made in files:
                if final == self.main:
                    if self._durable and done:
                        self._sync_folders()
                else:
                    before = self._copied(final) if final.exists() else None
                    done.append((final, before))
                if made:
                    made.replace(final)
                else:
                    final.unlink()
        except BaseException:
            if _restored(done) and whole:
                with suppress(OSError):  # it says that all files are the old ones
                    stamped.unlink(missing_ok=True)
            raise
        if self._durable:
            self._sync_folders()
        with suppress(OSError):  # it says that all files are the new ones
            stamped.unlink(missing_ok=True)

    def _write(self, final: Path, content: bytes) -> None:
        made, file = self._create(final.parent)
        os.write(file, content)
        if self._durable:
            os.fsync(file)
        made.replace(final)
        if self._durable:
            _sync_folder(final.parent)

    def _create(self, folder: Path) -> tuple[Path, int]:
        made, file = create_temporary(folder, self.main)
        self._temporary.append(made)
        self._locks.append(file)
        return made, file

    def _copied(self, path: Path) -> Path:
        """Return a second, hidden name of a file, or a copy where there are no links."""
        made = new_name(path.parent, self.main)
        try:
            os.link(path, made)
        except OSError:
            made, _ = self._create(path.parent)
            shutil.copy2(path, made)
        self._temporary.append(made)
        return made

    def _sweep(self, folder: Path) -> None:
        for path in _remains(folder, self.main):
            with suppress(OSError):
                file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                try:
                    if lock(file, sweeping=True):
                        path.unlink()
                finally:
                    os.close(file)

    def _sync_folders(self) -> None:
        for folder in {final.parent for final in self._new}:
            _sync_folder(folder)


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new empty file to write, which becomes ``target`` when the block succeeds.

    If the block raises, the new file is deleted and an existing one stays unchanged. Arrays that
    are mapped from the old file keep their content, so a model can be saved over itself.

    Parameters
    ----------
    target : path-like
        See `Save.replace`, which also lists the errors. A pipe or a device, such as
        ``/dev/stdout``, cannot be replaced and is yielded itself.

    Yields
    ------
    Path
    """
    path = Path(target)
    if is_temporary(path) and path.is_file():
        yield path  # one of the files of a save, which replaces the target itself
    elif path.exists() and not path.is_dir() and not path.is_file():
        yield path
    else:
        with Save(target) as save:
            yield save.replace(target)


def free_name(path: Path, suffix: str, taken: Collection[Path] = ()) -> Path:
    """Choose a name next to a file under which there is no file yet.

    Parameters
    ----------
    path : Path
    suffix : str
        Without a point: ``x.onnx`` leads to ``x.onnx.data``, ``x.onnx.1.data`` and so on; where
        that is too long for a name, its beginning is left out.
    taken : collection of Path
        Names that are about to be used.
    """
    for number in itertools.count():
        end = f".{number}.{suffix}" if number else f".{suffix}"
        stem = path.name
        while len(os.fsencode(stem + end)) > _LONGEST_NAME:
            stem = stem[1:]
        name = path.with_name(stem + end)
        if not os.path.lexists(name) and name not in taken:
            break
    return name


def _remains(folder: Path, main: Path) -> list[Path]:
    """Return the hidden files of saves of a model, living ones too."""
    with suppress(OSError):
        return [path for path in folder.glob(f"{own_prefix(main)}-*.tmp") if is_temporary(path)]
    return []


def _restored(done: list[tuple[Path, Path | None]]) -> bool:
    """Put old files back; return whether that succeeded."""
    failed = False
    for final, before in reversed(done):
        try:
            if before is None:
                final.unlink(missing_ok=True)
            else:
                before.replace(final)
        except OSError:  # noqa: PERF203
            failed = True
    return not failed


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


def _sync(path: Path, flags: int = 0) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, where the file system can do that."""
    with suppress(OSError):
        _sync(folder, os.O_DIRECTORY)
