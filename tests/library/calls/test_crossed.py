"""Two threads, two libraries, each calling the other: no Python runs under a library's lock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

KINDS = ["pass", "partitioner", "names", "inference", "forward", "state", "destruction", "load"]

# Whatever a library prints is written by a function that waits until the other thread is there
# too, and then makes every kind of call of the other library.
SCRIPT = """
import faulthandler, gc, os, sys, threading
import numpy as np
import passlib as pl

faulthandler.dump_traceback_later(100, exit=True)
stdout, paths, later = sys.stdout, sys.argv[1:3], sys.argv[3:5]
for path in paths:
    pl.library.load(path, verbose=False)
local = threading.local()
values = np.ones((2, 2), np.float32)
x = pl.sym.var("x")
chain = pl.sym.exp(pl.sym.exp(x, name="e1"), name="e2")

def foreign(number):
    return pl.sym.exp(getattr(pl.sym, f"add_number{1 - number}")(x, name="o"), name="e")

def executor(number):
    return getattr(pl.sym, f"add_calls{number}")(x, name="c").bind(pl.cpu(), {"x": values})

def drop(holder):
    holder.clear()
    gc.collect()

prepare = {"destruction": lambda n: [executor(n)], "forward": executor, "state": executor}
kinds = {
    "pass": lambda n, _: chain.optimize_for(f"countRuns{n}"),
    "partitioner": lambda n, _: chain.optimize_for(f"expTo{n}", {"x": values}),
    "names": lambda n, _: foreign(n).optimize_for(f"expTo{n}", {"x": values}, skip_infer=True),
    "inference": lambda n, _: getattr(pl.sym, f"add_number{n}")(x).infer_shape(x=(2, 2)),
    "forward": lambda n, _: getattr(pl.nd, f"add_number{n}")(pl.nd.array(values)),
    "state": lambda n, bound: bound.forward(),
    "destruction": lambda n, holder: drop(holder),
    "load": lambda n, _: pl.library.load(later[n], verbose=False, replace=True),
}

class Writer:
    def write(self, text):
        number = getattr(local, "number", None)
        if number is None or local.inside:
            return len(text)
        local.inside = True
        met.wait(60)
        for kind in ("pass", "partitioner", "inference", "forward", "state"):
            kinds[kind](1 - number, prepare.get(kind, str)(1 - number))
        return len(text)

    def flush(self):
        pass

sys.stdout = Writer()
failures = []

def run(number):
    local.number, local.inside = number, True
    try:
        given = prepare.get(kind, str)(number)
        if kind == "destruction":
            given[0].forward()
        start.wait(60)
        local.inside = False
        kinds[kind](number, given)
        assert local.inside, "the library printed nothing"
    except BaseException as error:
        failures.append((kind, error))
        met.abort()

for kind in kinds:
    met, start = threading.Barrier(2), threading.Barrier(2)
    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    if failures or any(thread.is_alive() for thread in threads):
        faulthandler.dump_traceback(all_threads=True)
        stdout.write(f"{kind} failed: {failures}")
        stdout.flush()
        os._exit(1)
    stdout.write(kind + " ")
stdout.flush()
"""


def test_crossed_libraries(plugin: Callable[[str], Path]) -> None:
    paths = [str(plugin(f"all_kinds_{number}")) for number in range(4)]
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *paths],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (run.stdout.split()[2:], run.returncode) == (KINDS, 0), run.stdout + run.stderr
