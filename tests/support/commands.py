"""Calls of the command line in processes of their own."""

from __future__ import annotations

import atexit
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

import command_server

_lock = threading.Lock()


def passlib_command(
    *arguments: Any, folder: Path | None = None, timeout: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run ``passlib`` with these arguments, in a process forked from one with passlib imported.

    Tests of how the process starts, of signals and of what Python reads at its start run
    ``python -m passlib`` itself.

    Raises
    ------
    subprocess.TimeoutExpired
        The process, and all that it started, have been ended.
    """
    words = [str(argument) for argument in arguments]
    wanted = {
        "arguments": words,
        "environment": dict(os.environ),
        "folder": os.path.abspath(folder or Path.cwd()),  # noqa: PTH100  # links stay
        "timeout": timeout,
    }
    with (
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        with _lock:
            calls = _server()
            files = [file.fileno() for file in (nothing, output, errors)]
            socket.send_fds(calls, [json.dumps(wanted).encode()], files)
            answer = calls.recv(command_server.MOST)
            if not answer:
                _server.cache_clear()
                raise RuntimeError("the server of commands ended")
        status, printed = json.loads(answer), (_text(output), _text(errors))
    if status is None:
        raise subprocess.TimeoutExpired(["passlib", *words], timeout, *printed)
    return subprocess.CompletedProcess(["passlib", *words], status, *printed)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


@functools.cache
def _server() -> socket.socket:
    """Start the server of this process, and return the socket for its calls."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with other:
        process = subprocess.Popen(
            [sys.executable, command_server.__file__, str(other.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[other.fileno()],
            start_new_session=True,
        )

    @atexit.register
    def stop() -> None:
        own.close()
        process.wait()

    return own
