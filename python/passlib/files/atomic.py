"""Atomic replacement of files."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["replacing"]


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new empty file to write; rename it to ``target`` when the block succeeds.

    If the block raises, the new file is deleted and an existing one stays unchanged. Arrays that
    are mapped from the old file keep their content, so a model can be saved over itself.

    Parameters
    ----------
    target : path-like
        Symbolic links are followed. An existing target that is not a regular file, such as a pipe
        or ``/dev/stdout``, cannot be replaced and is yielded itself.

    Yields
    ------
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
        yield Path(target)
        return
    temporary = final.with_name(f".passlib-{secrets.token_hex(8)}.tmp")
    temporary.open("xb").close()
    try:
        if final.exists():
            shutil.copymode(final, temporary)
        yield temporary
        temporary.replace(final)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
