"""Ctrl-C while a library's code runs in the main thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import signal, sys
import numpy as np
import passlib as pl

library, kind, mark, handler, seconds, watch = sys.argv[1:]
pl.library.load(library, verbose=False)
x = pl.sym.var("x")
symbol = pl.sym.exp(x, name="y")
before, values = symbol.tojson(), np.ones((2, 2), np.float32)
options = {"mark": mark, "seconds": seconds, "watch": watch}
calls = {
    "pass": lambda: symbol.optimize_for("slowPass", **options),
    "partitioner": lambda: symbol.optimize_for("slowParts", {"x": values}, **options),
    "operator": lambda: pl.nd.slow_op(pl.nd.array(values), **options),
}
if handler == "default":  # which a shell's background jobs do not have
    signal.signal(signal.SIGINT, signal.default_int_handler)
if handler == "own":
    signal.signal(signal.SIGINT, lambda *_: print("own handler"))
if handler == "ignore":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
try:
    calls[kind]()
    print("returned")
except KeyboardInterrupt:
    print("interrupted")
except pl.PasslibError as error:
    print("failed:", *(text.split()[-1] for text in error.messages))
assert symbol.tojson() == before
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler or handler != "default"
if handler == "default":
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        print("as before")
"""


def interrupt(
    library: Path, folder: Path, kind: str, handler: str, watch: str, signals: int
) -> tuple[int, list[str], str]:
    mark = folder / "mark"
    seconds = "60" if watch == "1" or signals > 1 else "0.7"
    command = [sys.executable, "-c", SCRIPT, str(library), kind, str(mark), handler, seconds, watch]
    return signalled(command, mark, signals, {})


def signalled(
    command: list[str], mark: Path, signals: int, settings: dict[str, str]
) -> tuple[int, list[str], str]:
    """Run a process and send it SIGINT, from when it has written a file."""
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **settings},
    )
    try:
        while not mark.exists() and child.poll() is None:
            time.sleep(0.01)
        for number in range(signals):
            time.sleep(0.1 * number)
            child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    return child.returncode, [line for line in out.splitlines() if line != "resting"], err


CASES = [
    ("pass", "default", "", 1, 0, ["interrupted", "as before"]),
    ("pass", "default", "1", 1, 0, ["interrupted", "as before"]),
    ("pass", "default", "", 2, -signal.SIGINT, []),
    ("partitioner", "default", "1", 1, 0, ["interrupted", "as before"]),
    ("operator", "default", "1", 1, 0, ["interrupted", "as before"]),
    ("pass", "own", "1", 1, 0, ["own handler", "failed: stopped"]),
    ("pass", "ignore", "", 1, 0, ["returned"]),
]


@pytest.mark.parametrize(("kind", "handler", "watch", "signals", "code", "printed"), CASES)
def test_interrupt(
    plugin: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    handler: str,
    watch: str,
    signals: int,
    code: int,
    printed: list[str],
) -> None:
    library = plugin("slow")
    returned, out, err = interrupt(library, tmp_path, kind, handler, watch, signals)
    assert (returned, out) == (code, printed), err
    speaks = handler == "default"
    assert ("KeyboardInterrupt is raised when it returns" in err) == speaks
    assert ("again to end the process" in err) == speaks
    name = {"pass": "slowPass", "partitioner": "slowParts", "operator": "slow_op"}[kind]
    assert (f"{kind} '{name}'" in err and str(library) in err) == speaks


LOADING = """
import signal, sys
import passlib as pl

signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    pl.library.load(sys.argv[1], verbose=False)
    print("returned")
except KeyboardInterrupt:
    print("interrupted")
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("as before")
"""


@pytest.mark.parametrize(
    ("phase", "seconds", "signals", "code", "printed"),
    [
        ("constructor", "1", 1, 0, ["interrupted", "as before"]),
        ("constructor", "60", 2, -signal.SIGINT, []),
        ("initialize", "60", 1, 0, ["interrupted", "as before"]),
        ("initialize", "1", 0, 0, ["returned", "as before"]),
    ],
)
def test_interrupt_of_loading(
    plugin: Callable[[str], Path],
    tmp_path: Path,
    phase: str,
    seconds: str,
    signals: int,
    code: int,
    printed: list[str],
) -> None:
    library, mark = plugin("slow_start"), tmp_path / "mark"
    settings = {"SLOW_START": phase, "SLOW_MARK": str(mark), "SLOW_SECONDS": seconds}
    command = [sys.executable, "-c", LOADING, str(library)]
    returned, out, err = signalled(command, mark, signals, settings)
    assert (returned, out) == (code, printed), err
    speaks = signals > 0
    assert (f"loading library '{library}' runs native code" in err) == speaks
    assert ("again to end the process" in err) == speaks
