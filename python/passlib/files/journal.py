"""Journals of saves: what is left to do when a process stops between two renames."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from passlib.errors import FormatError

__all__ = ["Journal", "lock", "settle", "sync_folder", "temporary_files", "temporary_name"]

logger = logging.getLogger(__name__)

_LARGEST = 1 << 20
_PATIENCE = 10.0
"""Seconds to wait for a save of another process that is about to finish."""

_TEMPORARY = re.compile(r"\.passlib-[0-9a-f]{16}\.tmp")


def temporary_name() -> str:
    """Return a new name for a file that is being written."""
    return f".passlib-{os.urandom(8).hex()}.tmp"


def temporary_files(folder: Path) -> list[Path]:
    """Return the files in a folder that have such names."""
    return [path for path in folder.glob(".passlib-*.tmp") if _TEMPORARY.fullmatch(path.name)]


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
        temporary = path.with_name(temporary_name())
        file = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        try:
            lock(file)
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
        try:
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _stuck(main, error) from error
        deadline = time.monotonic() + _PATIENCE
        while True:
            if lock(file):
                break
            if time.monotonic() > deadline:
                os.close(file)
                raise FormatError(
                    f"{main}: another process has been saving this model for "
                    f"{_PATIENCE:.0f} seconds; try again when it is done"
                )
            time.sleep(0.01)
        if not path.exists():
            os.close(file)
            return None
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
                needed |= cls._parsed(main, path.read_bytes()[:_LARGEST]).renames.keys()
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


def _stuck(main: Path, error: OSError) -> FormatError:
    return FormatError(
        f"{main}: a save of this model was interrupted, and its files cannot be put in place: "
        f"{error.strerror}; make the folder writable and try again"
    )
