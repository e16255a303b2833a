"""Processes forked from a server, see `passlib.passes.isolation.server`."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from passlib.errors import PasslibError
from passlib.files.fork_lock import ForkLock

_PAUSE: Final = 0.005
"""Seconds between two looks at whether a process has ended."""

_lock = ForkLock()
_servers: dict[int, subprocess.Popen[bytes]] = {}
"""The server by the number of the process that started it: forked processes start their own."""

_live: set[Path] = set()
"""The folders of processes that run."""


def run_forked(folder: Path, module: str, timeout: float | None) -> int | None:
    """Run ``main(folder)`` of a module in a process of its own, whose output goes to a file.

    Parameters
    ----------
    folder : Path
        Gets ``output.txt``.
    module : str
    timeout : float, optional
        Seconds, after which the process and all that it started are ended.

    Returns
    -------
    int or None
        The exit status, or the signal's number below zero; None after the time is over.

    Raises
    ------
    PasslibError
        No process can be started.
    """
    folder = folder.absolute()  # the server may have another working directory
    for name in ("pid", "status"):
        (folder / name).unlink(missing_ok=True)
    wanted = {
        "folder": str(folder),
        "module": module,
        "environment": dict(os.environ),
        "directory": str(Path.cwd()),
    }
    server = _asked(json.dumps(wanted).encode() + b"\n")
    _live.add(folder)
    end = None if timeout is None else time.monotonic() + timeout
    try:
        while not (folder / "status").exists():
            if server.poll() is not None:
                raise PasslibError("the server of isolated processes ended: call again")
            if end is not None and time.monotonic() > end:
                _end(folder)
                return None
            time.sleep(_PAUSE)
        return int((folder / "status").read_text("utf-8"))
    except BaseException:
        # Ctrl-C ends a pass that hangs.
        _end(folder)
        raise
    finally:
        _live.discard(folder)


def end_children() -> None:
    """End the processes that other threads of this one wait for."""
    for folder in tuple(_live):
        _end(folder)


def _asked(line: bytes) -> subprocess.Popen[bytes]:
    with _lock:
        server = _servers.get(os.getpid())
        if server is None or server.poll() is not None:
            server = subprocess.Popen(
                [sys.executable, "-m", f"{__package__}.server"],
                stdin=subprocess.PIPE,
                start_new_session=True,
            )
            _servers.clear()
            _servers[os.getpid()] = server
        assert server.stdin is not None
        server.stdin.write(line)
        server.stdin.flush()
        return server


@atexit.register
def _stop() -> None:
    server = _servers.pop(os.getpid(), None)
    if server is not None and server.stdin is not None:
        with contextlib.suppress(OSError):
            server.stdin.close()
        server.wait()


def _end(folder: Path) -> None:
    """End the process of a folder, which may not have begun yet, and all that it started.

    The server has written its last file into the folder then, which the caller may remove.
    """
    if _is_written(folder, "pid") and not (folder / "status").exists():
        number = int((folder / "pid").read_text("utf-8"))
        # A process that has only just begun is no group yet.
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(number, signal.SIGKILL)
        _is_written(folder, "status")


def _is_written(folder: Path, name: str) -> bool:
    """Wait until the server has written a file; False if it will not."""
    while not (folder / name).exists():
        server = _servers.get(os.getpid())
        if not folder.exists() or server is None or server.poll() is not None:
            return False
        time.sleep(_PAUSE)
    return True
