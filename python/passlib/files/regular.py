"""Files: only regular ones are read, and a save replaces all files of a model, or none."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import json
import logging
import os
import re
import shutil
import stat
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, TypeVar

import passlib._core as _core
from passlib.errors import FormatError, PasslibError, printable

logger = logging.getLogger(__name__)

_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def check_path(
    path: str | os.PathLike[str], *, folders: bool = False, writing: bool = False
) -> Path:
    """Return a path, unless no file can have it, or it leads to something other than a file.

    There may be nothing at it; ``folders`` accepts a folder. Raises `FormatError`, which names the
    kind of thing that is there, and for ``writing`` advises another name.
    """
    location = Path(path)
    text = os.fspath(location)
    if "\0" in text:
        raise FormatError(f"{text!r}: a path cannot have a NUL character in it")
    try:
        mode = location.stat().st_mode
    except UnicodeEncodeError as error:
        raise FormatError(f"{text!r}: a path cannot have half of a surrogate pair in it") from error
    except OSError:  # opening it reports why
        return location
    if not (folders and stat.S_ISDIR(mode)):
        _check_mode(location, mode, writing=writing)
    return location


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether there is a regular file at a path, or a link to one; never raises."""
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading, as binary.

    Raises the errors of `check_path`, and `OSError` if the file cannot be opened.
    """
    location = check_path(path)

    def opener(name: str, flags: int) -> int:
        # A pipe may have replaced the file since the check: never wait for its writer.
        return os.open(name, flags | os.O_NONBLOCK | os.O_CLOEXEC)

    file: BinaryIO = open(location, "rb", opener=opener)  # noqa: SIM115 (Path has no opener)
    try:
        _check_mode(location, os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Read all of a regular file; errors are those of `open_regular`, and lack of memory."""
    with open_regular(path) as file, memory_named(path):
        return file.read()


@contextmanager
def memory_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Report that memory ran out inside the block as a `FormatError` that names the file."""
    try:
        yield
    except (MemoryError, OSError) as error:
        # Mapping a file that does not fit into the address space is an error of the system.
        if isinstance(error, OSError) and error.errno != errno.ENOMEM:
            raise
        what = f"this file of {Path(path).stat().st_size} bytes" if is_regular(path) else "it"
        raise FormatError(
            f"{os.fspath(path)}: reading {what} needs more memory than there is"
        ) from error


def _check_mode(path: Path, mode: int, *, writing: bool = False) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((kind for matches, kind in _KINDS if matches(mode)), "no file")
    advice = "save under another name" if writing else "copy what it yields to a file"
    raise FormatError(
        f"{path}: this is {kind}, and only regular files are read and written"
        + ("" if stat.S_ISDIR(mode) else f"; {advice}")
    )


PATIENCE = 10.0
"""Seconds to wait for another process that saves the same model."""

_TEMPORARY = re.compile(r"\.passlib-[0-9a-f]{16}-[0-9a-f]{16}\.tmp")


def own_prefix(main: Path) -> str:
    """Return how the names of all hidden files of one model begin, however long its own is."""
    return f".passlib-{hashlib.sha256(os.fsencode(main.name)).hexdigest()[:16]}"


def is_temporary(path: Path) -> bool:
    """Whether a path has the name of a file that is being written."""
    return _TEMPORARY.fullmatch(path.name) is not None


def new_name(folder: Path, main: Path) -> Path:
    """Return a hidden name for a file of a model."""
    return folder / f"{own_prefix(main)}-{os.urandom(8).hex()}.tmp"


def create_temporary(folder: Path, main: Path) -> tuple[Path, int]:
    """Create a file that is being written, and lock it while its descriptor is open.

    Raises `OSError` if the folder is not writable; the error names it rather than the file.
    """
    while True:
        path = new_name(folder, main)
        try:
            file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise type(error)(error.errno, error.strerror, str(folder)) from None
        # Until it is locked, another save may take it for one that a killed process left.
        lock(file)
        if os.fstat(file).st_nlink:
            return path, file
        os.close(file)


def lock(file: int, *, sweeping: bool = False) -> bool:
    """Lock an open file; return whether that succeeded.

    A save waits for one that sweeps, and then finds its file deleted or spared. The lock is one
    of the open file description: it lasts until the descriptor is closed, and
    libraries that call ``flock``, as HDF5 does, do not meet it.
    """
    kind = fcntl.F_RDLCK if sweeping else fcntl.F_WRLCK
    command = fcntl.F_OFD_SETLK if sweeping else fcntl.F_OFD_SETLKW
    whole = struct.pack("hhqqi", kind, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(file, command, whole)
    except OSError:
        return False
    return True


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a folder against other saves, which wait; where it cannot be locked, do nothing.

    Raises `FormatError` if another process holds the folder and does not come to an end.
    """
    try:
        file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise waited(folder, "saving in this folder") from None
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


def waited(place: Path, what: str) -> FormatError:
    """Return the error for another process that does not come to an end."""
    return FormatError(
        f"{place}: another process has been {what} for {PATIENCE:.0f} seconds; try again when it "
        "is done"
    )


_ATTRIBUTE = "user.passlib.data-of"
"""An extended attribute of the files that passlib wrote beside a main file.

No model's text can forge it.
"""


def mark(file: Path, final: Path, main: Path) -> None:
    """Mark a complete file as one that passlib wrote for a model, until its content changes.

    Without the mark the file is never deleted: marks in files could come with the model. ``final``:
    the name that it will have. ``main``: of the model. Raises `OSError` where there are no marks.
    """
    os.setxattr(file, _ATTRIBUTE, _mark(file.stat(), final, main))


def is_own(file: Path, main: Path) -> bool:
    """Whether passlib wrote a file for a model, and nothing has changed it since."""
    with suppress(OSError):
        found = os.getxattr(file, _ATTRIBUTE, follow_symlinks=False)
        return found == _mark(file.lstat(), file, main)
    return False


def _mark(state: os.stat_result, final: Path, main: Path) -> bytes:
    owner = os.fsencode(os.path.relpath(os.path.realpath(main), os.path.realpath(final.parent)))
    return hashlib.sha256(b"%d %d " % (state.st_size, state.st_mtime_ns) + owner).digest()


_T = TypeVar("_T")

_LARGEST = 1 << 16


def stamp_path(main: Path) -> Path:
    """Return the path of the stamp, a file next to a model while its files are replaced."""
    return main.with_name(f"{own_prefix(main)}.stamp")


def stamp(main: Path, new: Sequence[tuple[Path, Path | None]]) -> bytes:
    """Return the content of a stamp: the states of the files before a save and after it.

    ``new`` has each file, and the one that replaces it; None if it is removed.
    """
    # Files that an earlier save left mixed are in no state to return to.
    whole = is_whole(main)
    states = {
        os.path.relpath(final, main.parent): [
            _state(final) if whole else [],
            None if made is None else _state(made),
        ]
        for final, made in new
    }
    return json.dumps(states).encode()


def is_whole(main: Path) -> bool:
    """Whether the files of a model are of one save, as far as a stamp beside them says."""
    try:
        with open_regular(stamp_path(main)) as file:
            states = json.loads(file.read(_LARGEST))
        found = [(_state(main.parent / name), old, new) for name, (old, new) in states.items()]
    except (OSError, ValueError, TypeError, AttributeError, RecursionError, PasslibError):
        return True  # there is no stamp, or nothing that passlib wrote
    return all(now == old for now, old, _ in found) or all(now == new for now, _, new in found)


def check_whole(main: str | os.PathLike[str]) -> None:
    """Raise `FormatError` if an interrupted save left the files of a model half replaced."""
    path = Path(os.path.realpath(main))
    if not is_whole(path):
        raise FormatError(
            f"{main}: a save was interrupted, and the files of this model are now of two saves; "
            f"save the model again, or put together what belongs together (its other files are "
            f"{own_prefix(path)}-*.tmp in the same folder) and delete {stamp_path(path).name}"
        )


def read_together(
    main: str | os.PathLike[str], read: Callable[[], _T], *, bound: bool = True
) -> _T:
    """Read a file and those that belong to it, which are of one save.

    ``main`` and ``bound`` are as given to `Save`. If another process saves the files meanwhile,
    they are read again. Raises the errors of `check_path`, and `FormatError` if an interrupted save
    left them half replaced, or other processes save them all the time.
    """
    path = Path(os.path.realpath(check_path(main, folders=True)))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with _held(path) as before:
            error: BaseException | None = None
            try:
                found = read()
            except (PasslibError, OSError) as raised:
                error = raised
            # In this order: a stamp disappears after the main file was replaced.
            if bound and stamp_path(path).exists():
                with alone_in(path.parent):
                    check_whole(main)
                    return read()
            if before == _state(path):
                if error is not None:
                    raise error
                return found
    raise waited(Path(main), "saving this model")


@contextmanager
def _held(path: Path) -> Iterator[list[int] | None]:
    """Give the state of a file, and hold it open, so that no other one gets its inode."""
    with ExitStack() as stack:
        state = _state(path)
        with suppress(OSError, ValueError):
            if path.is_file():
                file = stack.enter_context(path.open("rb", buffering=0))
                state = _state_of(os.fstat(file.fileno()))
        yield state


def _state(path: Path) -> list[int] | None:
    """Return what changes when a file is replaced; None if there is none."""
    with suppress(OSError, ValueError):
        return _state_of(path.stat())
    return None


def _state_of(about: os.stat_result) -> list[int]:
    return [about.st_ino, about.st_size, about.st_mtime_ns]


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writing, which come without the name of the file."""

_LONGEST_NAME = 255
"""In bytes, on the file systems of Linux."""

_durable: ContextVar[bool] = ContextVar("durable", default=True)
_sources: ContextVar[Sequence[Any]] = ContextVar("sources", default=())


@contextmanager
def written_from(arrays: Iterable[Any]) -> Iterator[None]:
    """Check the files that arrays are mapped from, now and before a save in the block replaces any.

    Raises `FormatError` if such a file was changed after it was mapped.
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
    """
    token = _durable.set(durable)
    try:
        yield
    finally:
        _durable.reset(token)


class Save:
    """The files of one save.

    New files are written under hidden names in the same folders. When the block succeeds, they are
    flushed to the disk and renamed, ``main`` last. If the block or a rename raises, the new files
    are deleted and existing ones are as before. What a killed save leaves is deleted by the next
    save of the same main file, and read by nobody.

    Parameters
    ----------
    main : path-like
        The file that leads to the others, such as the graph of a model.
    bound : bool
        Whether the other files have fixed names, so that they cannot be replaced by the rename of
        the main file. A stamp lets readers recognise the state between.
    left : callable, optional
        Return the files that are not needed once the main file is in place; they are deleted.
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
        self._kept: dict[Path, Any] = {}
        self._temporary: list[Path] = []
        self._locks: list[int] = []

    def __enter__(self) -> Save:
        return self

    def replace(self, target: str | os.PathLike[str], *, free: bool = False) -> Path:
        """Return an empty file to write, which becomes ``target``, or what that links to.

        It is in the same folder, with the permissions and the owner of the old file, as far as the
        user may give a file away, or the default ones. With ``free``, the name was chosen because
        nothing has it, see `free_name`; if another save chose it too, the later one fails: its main
        file would lead to the other's data. Raises `FormatError` if the target is a pipe, a device
        or a socket; `OSError` if it is a folder, or its folder is missing or not writable.
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
        """Delete a file together with the replacement of the others, if it is the model's own."""
        final = Path(os.path.realpath(target))
        if is_own(final, self.main):
            self._new.setdefault(final, None)

    def keep(self, target: Path) -> None:
        """Require that a file, which the main file will lead to, is still there in the end."""
        self._kept[target] = _state(target)

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
        for final, made in self._new.items():
            if made is not None and final != self.main:
                self._mark(made, final)
        if self._durable:
            # Not the open descriptors: a writer may have replaced a file by another one.
            for temporary in filter(None, self._new.values()):
                _sync(temporary)
        with alone_in(self.main.parent):
            for final in self._free:
                if final.exists():
                    what = "another save chose the same name for its data; save again"
                    raise FileExistsError(errno.EEXIST, what, str(final))
            for kept, state in self._kept.items():
                if _state(kept) != state:
                    what = "another save replaced this data of the model; save again"
                    raise FileNotFoundError(errno.ENOENT, what, str(kept))
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

    def _mark(self, made: Path, final: Path) -> None:
        try:
            mark(made, final, self.main)
        except OSError as error:
            if not self._bound:  # others are replaced by the next save, rather than left behind
                logger.warning(
                    "%s cannot be marked as data of %s (%s), so later saves will not delete it",
                    *map(printable, (final, self.main.name, error.strerror)),
                )

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
    are mapped from the old file keep their content, so a model can be saved over itself. A pipe or
    a device, such as ``/dev/stdout``, cannot be replaced and is yielded itself. Raises the errors
    of `Save.replace`.
    """
    path = Path(target)
    if is_temporary(path) and path.is_file():
        yield path  # one of the files of a save, which replaces the target itself
    elif path.exists() and not path.is_dir() and not path.is_file():
        yield path
    else:
        with Save(target) as save:
            yield save.replace(target)


def free_name(path: Path, suffix: str) -> Path:
    """Choose a name next to a file under which there is no file yet.

    ``x.onnx`` leads to ``x.onnx.data``, ``x.onnx.1.data`` and so on for the suffix ``data``; the
    beginning of a name that is too long is left out.
    """
    for number in itertools.count():
        end = f".{number}.{suffix}" if number else f".{suffix}"
        stem = path.name
        while len(os.fsencode(stem + end)) > _LONGEST_NAME:
            stem = stem[1:]
        name = path.with_name(stem + end)
        if not os.path.lexists(name):
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
        with suppress(OSError):  # only root may change the owner
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
