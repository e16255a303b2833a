"""Journals of saves: what is left to do when a process stops between two renames."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import stat
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from passlib.errors import FormatError, PasslibError
from passlib.files.regular import read_regular

__all__ = [
    "Journal",
    "alone_in",
    "create_temporary",
    "is_temporary",
    "lock",
    "read_together",
    "settle",
    "sync_folder",
    "temporary_files",
]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_LARGEST = 1 << 20
_PATIENCE = 10.0
"""Seconds to wait for a save of another process that is about to finish."""

_TEMPORARY = re.compile(r"\.passlib-[0-9a-f]{16}\.tmp")


def is_temporary(path: Path) -> bool:
    """Whether a path has the name of a file that is being written."""
    return _TEMPORARY.fullmatch(path.name) is not None


def create_temporary(folder: Path) -> tuple[Path, int]:
    """Create a file that is being written, and lock it while its descriptor is open.

    Raises
    ------
    OSError
        The folder is not writable; the error names it rather than the file.
    """
    while True:
        path = folder / f".passlib-{os.urandom(8).hex()}.tmp"
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(folder)) from None
        # Until it is locked, another save may take it for one that a killed process left.
        lock(file)
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)


def temporary_files(folder: Path) -> list[Path]:
    """Return the files in a folder that have such names."""
    return [path for path in folder.glob(".passlib-*.tmp") if is_temporary(path)]


def lock(file: int) -> bool:
    """Lock an open file against other saves, without waiting; return whether that succeeded.

    The lock is one of the open file description: it lasts until the descriptor is closed, and
    libraries that call ``flock``, as HDF5 does, do not meet it.
    """
    whole = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, whole)
    except OSError:
        return False
    return True


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder against other saves, which wait; where it cannot be locked, do nothing.

    Raises
    ------
    FormatError
        Another process holds the folder and does not come to an end.
    """
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise _waited(folder, "saving in this folder") from None
                time.sleep(0.01)
                continue
            except OSError:  # the file system has no locks
                pass
            break
        yield
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to the disk, where the file system can do that."""
    with suppress(OSError):
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


@dataclass
class Journal:
    """The renames and deletions that complete a save.

    All files stand in one folder: a journal that a stranger put there reaches no other one, and
    moves only files that carry a temporary name.

    Attributes
    ----------
    main : Path
        The file whose name the journal carries.
    renames : mapping of Path to Path
        New files and what they become, in order.
    gone : sequence of Path
        Files that are deleted afterwards.
    """

    main: Path
    renames: Mapping[Path, Path]
    gone: Sequence[Path] = ()
    _lock: int | None = field(default=None, repr=False)

    @staticmethod
    def path_of(main: Path) -> Path:
        """Return the path of the journal of a file."""
        return main.with_name(f".passlib-{main.name}.journal")

    def write(self, *, durable: bool) -> None:
        """Write the journal, whole or not at all.

        Raises
        ------
        OSError
        """
        content = {
            "renames": [[new.name, final.name] for new, final in self.renames.items()],
            "gone": [path.name for path in self.gone],
        }
        folders = {path.parent for pair in self.renames.items() for path in pair}
        folders |= {path.parent for path in self.gone}
        assert folders == {self.main.parent}, "the files of a model stand in one folder"
        path = self.path_of(self.main)
        temporary, file = create_temporary(path.parent)
        try:
            os.write(file, json.dumps(content).encode())
            if durable:
                os.fsync(file)
            temporary.replace(path)
        except BaseException:
            os.close(file)
            with suppress(OSError):
                temporary.unlink()
            raise
        self._lock = file
        if durable:
            sync_folder(path.parent)

    def finish(self, *, durable: bool) -> None:
        """Do what is left to do, and delete the journal.

        Raises
        ------
        OSError
            Something could not be done; the journal stays for another attempt.
        """
        try:
            for new, final in self.renames.items():
                with suppress(FileNotFoundError):  # done before the interruption
                    new.replace(final)
            for path in self.gone:
                path.unlink(missing_ok=True)
            if durable:
                sync_folder(self.main.parent)
            self.path_of(self.main).unlink(missing_ok=True)
        finally:
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    @classmethod
    def read(cls, main: Path) -> Journal | None:
        """Read the journal of a file; None if there is none.

        A save that another process is finishing right now is waited for.

        Raises
        ------
        FormatError
            The journal is damaged, or the other process does not come to an end.
        """
        path = cls.path_of(main)
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                raise _stuck(main, error) from error
            if not stat.S_ISREG(os.fstat(file).st_mode):
                os.close(file)
                raise _damaged(main)
            # One that has no name any more was finished by its own save.
            if lock(file) and os.fstat(file).st_nlink:
                break
            os.close(file)
            if time.monotonic() > deadline:
                raise _waited(main, "saving this model")
            time.sleep(0.01)
        journal = cls._parsed(main, os.read(file, _LARGEST))
        journal._lock = file
        return journal

    @classmethod
    def _parsed(cls, main: Path, text: bytes) -> Journal:
        try:
            content = json.loads(text)
            pairs = [(str(new), str(final)) for new, final in content["renames"]]
            gone = [str(name) for name in content["gone"]]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _damaged(main) from error
        finals = [final for _, final in pairs]
        plain = all(name == Path(name).name and name for name in (*finals, *gone))
        if not plain or not all(_TEMPORARY.fullmatch(new) for new, _ in pairs):
            raise _damaged(main)
        return cls(
            main,
            {main.with_name(new): main.with_name(final) for new, final in pairs},
            [main.with_name(name) for name in gone],
        )

    @classmethod
    def temporaries(cls, folder: Path) -> set[Path]:
        """Return the new files in a folder that journals still need."""
        needed: set[Path] = set()
        for path in folder.glob(".passlib-*.journal"):
            main = folder / path.name.removeprefix(".passlib-").removesuffix(".journal")
            with suppress(OSError, FormatError):
                needed |= cls._parsed(main, read_regular(path)[:_LARGEST]).renames.keys()
        return needed


def settle(main: str | os.PathLike[str]) -> bool:
    """Finish the save of a file, if a process was stopped in the middle of it.

    Call it before the file and those that belong to it are read or written.

    Parameters
    ----------
    main : path-like
        The file that was given to `passlib.files.unit.Unit`.

    Returns
    -------
    bool
        Whether there was such a save.

    Raises
    ------
    FormatError
        The journal is damaged, or the save can be finished neither here nor by the process that
        began it.
    """
    path = Path(os.path.realpath(main))
    journal = Journal.read(path)
    if journal is None:
        return False
    try:
        journal.finish(durable=True)
    except OSError as error:
        raise _stuck(path, error) from error
    logger.warning("finished a save of %s that had been interrupted", path)
    return True


def _damaged(main: Path) -> FormatError:
    return FormatError(
        f"{Journal.path_of(main)}: this journal of an interrupted save is damaged; delete it to "
        "read the files as they are"
    )


def read_together(main: str | os.PathLike[str], read: Callable[[], _T]) -> _T:
    """Finish an interrupted save, then read a file and those that belong to it.

    If another process saves them meanwhile, they are read again: the graph of one save does not
    come with the weights of another.

    Parameters
    ----------
    main : path-like
        See `settle`.
    read : callable

    Raises
    ------
    FormatError
        See `settle`; or other processes save these files all the time.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        settle(main)
        before = _version(main)
        try:
            found = read()
        except (PasslibError, OSError):
            if before == _version(main) is not None:
                raise
        else:
            if before == _version(main) is not None:
                return found
        if time.monotonic() > deadline:
            raise _waited(Path(main), "saving this model")


def _version(main: str | os.PathLike[str]) -> tuple[int, ...] | None:
    """Return what changes when a file is replaced; None while a save is being finished."""
    path = Path(os.path.realpath(main))
    if Journal.path_of(path).exists():
        return None
    with suppress(OSError):
        about = path.stat()
        return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns
    return ()


def _waited(place: Path, what: str) -> FormatError:
    return FormatError(
        f"{place}: another process has been {what} for {_PATIENCE:.0f} seconds; try again when it "
        "is done"
    )


def _stuck(main: Path, error: OSError) -> FormatError:
    return FormatError(
        f"{main}: a save of this model was interrupted, and its files cannot be put in place: "
        f"{error.strerror}; make the folder writable and try again"
    )
