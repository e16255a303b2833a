"""The process that others are forked from: ``python -m passlib.passes.isolation.server``.

A process that is forked here has passlib imported already, which would take longer than most
passes. The server has one thread and runs no pass itself. It reads a line of JSON for each process
that is wanted; of each it writes the number into ``pid`` and, when it has ended, the status into
``status`` of its folder. When its input ends, it ends all of them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import select
import signal
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    awake, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.set_wakeup_fd(woken)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, Path] = {}
    left = b""
    while True:
        ready = select.select([sys.stdin.fileno(), awake], [], [])[0]
        if awake in ready:
            os.read(awake, 4096)
            _note_ended(running)
        if sys.stdin.fileno() not in ready:
            continue
        data = os.read(sys.stdin.fileno(), 1 << 16)
        if not data:
            break
        *lines, left = (left + data).split(b"\n")
        for line in lines:
            wanted = json.loads(line)
            running[_forked(wanted)] = Path(wanted["folder"])
    for number in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)


def _note_ended(running: dict[int, Path]) -> None:
    while running:
        number, status = os.waitpid(-1, os.WNOHANG)
        if not number:
            return
        _write(running.pop(number), "status", str(os.waitstatus_to_exitcode(status)))


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file that is whole as soon as it is there; the folder may be gone."""
    with contextlib.suppress(OSError):
        made = folder / f".{name}"
        made.write_text(text, "utf-8")
        made.replace(folder / name)


def _forked(wanted: dict[str, Any]) -> int:
    module = importlib.import_module(wanted["module"])
    number = os.fork()
    if number:
        _write(Path(wanted["folder"]), "pid", str(number))
        return number
    code = 1
    try:
        os.setsid()
        _prepare(wanted)
        module.main(Path(wanted["folder"]))
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code & 0xFF)


def _prepare(wanted: dict[str, Any]) -> None:
    """Set up a new process: output, environment and directory of the one that asked for it."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(f"{wanted['folder']}/output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for own, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(own, target)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    os.chdir(wanted["directory"])


if __name__ == "__main__":
    main()
