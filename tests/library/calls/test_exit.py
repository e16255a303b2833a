"""The end of the interpreter while a daemon thread is in native code."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = """
import atexit, os, sys, threading, time
import numpy as np

late = []
atexit.register(lambda: late and late[0]())  # after passlib's own function
import passlib as pl

library, kind, mark, seconds, finish = sys.argv[1:]
pl.library.load(library, verbose=False)
x = pl.sym.var("x")
values = np.ones((2, 2), np.float32)
options = {"mark": mark, "seconds": seconds, "finish": finish}

def work():
    while True:
        try:
            if kind == "pass":
                pl.sym.exp(x).optimize_for("slowPass", {"x": values}, **options)
            elif kind == "partitioner":
                pl.sym.exp(x).optimize_for("slowParts", {"x": values}, **options)
            elif kind == "model":
                model(values)
                open(mark, "w").close()
            elif kind == "operator":
                pl.nd.slow_op(pl.nd.array(values), **options)
            else:
                pl.sym.load_json(text)
                open(mark, "w").close()
        except pl.PassError:
            pass

def in_main_thread():
    pl.sym.exp(x).optimize_for("slowPass")
    print("late call", flush=True)

if seconds != "60":  # else the library is busy
    late.append(in_main_thread)
text = pl.sym.exp(x).tojson()
model = pl.Model(pl.sym.dot(x, x)) if kind == "model" else None
for number in range(4):
    threading.Thread(target=work, daemon=True).start()
while not os.path.exists(mark):
    time.sleep(0.005)
"""

CASES = [
    ("pass", "0.05", ""),
    ("pass", "0.05", "throw"),
    ("pass", "0", "fail"),
    ("pass", "60", ""),
    ("partitioner", "0.01", ""),
    ("operator", "0.01", ""),
    ("reader", "0", ""),
    ("model", "0", ""),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kind", "seconds", "finish"), CASES)
def test_daemon_threads_at_exit(
    plugin: Callable[[str], Path], tmp_path: Path, kind: str, seconds: str, finish: str
) -> None:
    if kind == "model":
        pytest.importorskip("onnxruntime", reason="needs the extra run")
    hangs = seconds == "60"
    arguments = [str(plugin("slow")), kind, str(tmp_path / "mark"), seconds, finish]
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PASSLIB_EXIT_WAIT": "0.3" if hangs else "30"},
    )
    begun = time.monotonic()
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert ("late call" in out) != hangs
    assert ("thread(s) run native code" in err) == hangs, err
    assert time.monotonic() - begun < 50


def test_a_wait_that_is_no_number_is_ignored() -> None:
    child = subprocess.run(
        [sys.executable, "-c", "import passlib; passlib.library.load_standard()"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PASSLIB_EXIT_WAIT": "long"},
    )
    assert (child.returncode, child.stderr) == (0, "")
