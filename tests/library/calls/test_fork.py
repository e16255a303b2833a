"""Forked children, while threads of the parent are in native code or in passlib's locks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

BUSY = """
import os, sys, threading, time
import passlib as pl

slow, other, mark = sys.argv[1:]
for path in (slow, other):
    pl.library.load(path, verbose=False)
x = pl.sym.var("x")
symbol = pl.sym.exp(x, name="y")

def work():
    symbol.optimize_for("slowPass", mark=mark, seconds="3")

thread = threading.Thread(target=work)
thread.start()
while not os.path.exists(mark):
    time.sleep(0.005)
child = os.fork()
if child == 0:
    import signal
    signal.alarm(60)
    for attempt in range(2):
        try:
            symbol.optimize_for("slowPass")
            os._exit(2)
        except pl.LoadError as error:
            assert "slow" in str(error) and "forked while" in str(error), error
    symbol.optimize_for("countRuns0")
    assert pl.library.load(slow, verbose=False).passes == ("slowPass",)
    os._exit(0)
_, status = os.waitpid(child, 0)
assert thread.is_alive(), "the child waited for the parent's call"
thread.join()
symbol.optimize_for("slowPass")
print("status", status)
"""

# Threads are in locks for a short time only, so many forks are needed to meet one.
MANY = """
import os, sys, threading
import passlib as pl

paths = sys.argv[1:]
for path in paths:
    pl.library.load(path, verbose=False)
symbol = pl.sym.var("x")
for number in range(300):
    symbol = pl.sym.exp(symbol)
symbol = pl.sym.load_json(symbol.tojson())
ending = False

def work():
    while not ending:
        symbol.optimize_for("countRuns0")
        pl.library.load(paths[0], verbose=False)
        pl.library.loaded()

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
failed = 0
for fork in range(20):
    child = os.fork()
    if child == 0:
        import signal
        signal.alarm(40)
        symbol.optimize_for("countRuns1")
        pl.library.load(paths[1], verbose=False)
        os._exit(0)
    failed += os.waitpid(child, 0)[1] != 0
ending = True
for thread in threads:
    thread.join()
print("status", failed)
"""


def run(script: str, *arguments: object) -> str:
    child = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout.splitlines()[-1]


def test_library_that_was_in_a_call(plugin: Callable[[str], Path], tmp_path: Path) -> None:
    assert run(BUSY, plugin("slow"), plugin("all_kinds_0"), tmp_path / "mark") == "status 0"


def test_locks_are_free_in_children(plugin: Callable[[str], Path]) -> None:
    assert run(MANY, plugin("all_kinds_0"), plugin("all_kinds_1")) == "status 0"
