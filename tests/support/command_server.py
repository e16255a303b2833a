"""The process that commands are forked from: ``python command_server.py`` and a socket's number.

What is forked here has passlib imported already, with all that its commands use; apart from that
it is a process like any other: its output, its directory and its environment are those of the
call, and it ends as Python ends. ONNX Runtime is not imported, as it starts threads at once, which
no fork takes along. The server runs one command at a time, ends those that take too long with all
that they started, and ends itself when the other end of the socket is closed.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MOST = 1 << 20
"""Bytes of a call, which the socket keeps together."""

OTHERS = ("h5py", "ml_dtypes", "onnx.checker", "safetensors.numpy")
"""Modules of others that commands import, but ONNX Runtime, which starts threads when imported."""


def import_all() -> None:
    """Import what commands use; what is not installed is missing in the commands too."""
    folders = [Path(folder) for folder in importlib.import_module("passlib").__path__]
    files = {path.relative_to(folder.parent) for folder in folders for path in folder.rglob("*.py")}
    for name in (*sorted(".".join(file.with_suffix("").parts) for file in files), *OTHERS):
        if not name.endswith(".__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name.removesuffix(".__init__"))


def forked() -> int:
    with warnings.catch_warnings():
        # Python warns where there are threads; those of OpenBLAS are made for it.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def waited(number: int, calls: socket.socket, timeout: float) -> int | None:
    """Return the exit status of a process, or None if it was ended with all that it started."""
    process = os.pidfd_open(number)
    ready, *_ = select.select([process, calls], [], [], timeout)
    os.close(process)
    if process not in ready:
        # A process that has only just begun leads no group yet.
        for kill in (os.kill, os.killpg):
            with contextlib.suppress(ProcessLookupError):
                kill(number, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    return status if process in ready else None


def become(wanted: dict[str, Any], files: list[int]) -> None:
    """Make this process what a new one of the call would be."""
    os.setsid()
    for file, target in zip(files, (0, 1, 2), strict=True):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["folder"])
    sys.path[0] = wanted["folder"]
    sys.argv[1:] = wanted["arguments"]
    np.random.seed()  # noqa: NPY002  # which a fork copies, other than Python's own numbers


def answered(calls: socket.socket) -> bool:
    """Answer calls until the other end is closed; true in a process that was forked for a call."""
    while True:
        message, files, _, _ = socket.recv_fds(calls, MOST, 3)
        if not message:
            return False
        wanted = json.loads(message)
        number = forked()
        if not number:
            calls.close()
            become(wanted, files)
            return True
        for file in files:
            os.close(file)
        status = waited(number, calls, wanted["timeout"])
        with contextlib.suppress(BrokenPipeError):
            calls.send(json.dumps(status).encode())


if __name__ == "__main__":
    import_all()
    gc.collect()
    gc.freeze()  # a collection would copy all pages
    if answered(socket.socket(fileno=int(sys.argv[1]))):
        runpy.run_module("passlib", run_name="__main__", alter_sys=True)
