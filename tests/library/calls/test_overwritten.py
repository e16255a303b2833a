"""A library whose file is overwritten while it is loaded is not called any more."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# The interpreter must not end normally, because that would run destructors of the library.
OVERWRITTEN = """
import gc, os, sys
import numpy as np
import passlib as pl

path = sys.argv[1]
pl.library.load(path, verbose=False)
x, values = pl.sym.var("x"), np.ones((2, 2), np.float32)
symbol = pl.sym.exp(x)
counted = pl.sym.add_calls0(x).bind(pl.cpu(), {"x": values})
counted.forward()
calls = {
    "pass": lambda: symbol.optimize_for("countRuns0"),
    "partitioner": lambda: symbol.optimize_for("expTo0", {"x": values}),
    "operator": lambda: pl.nd.add_number0(pl.nd.array(values)),
    "symbol": lambda: pl.sym.add_number0(x).infer_shape(x=(2, 2)),
    "state": lambda: counted.forward(),
}
# None of these changes the content.
for change in (
    lambda: os.utime(path, (1, 1)),
    lambda: os.chmod(path, 0o700),
    lambda: os.link(path, path + ".link"),
    lambda: (os.rename(path, path + ".moved"), os.rename(path + ".moved", path)),
):
    change()
    for call in calls.values():
        call()
before = os.stat(path)
data = open(path, "rb").read()
with open(path, "r+b") as file:
    file.write(bytes(len(data)))
if sys.argv[2] == "earlier":
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
for name, call in calls.items():
    try:
        call()
        print(name, "ran")
    except pl.LoadError as error:
        assert path in str(error) and "overwritten" in str(error), error
del counted, calls, call
gc.collect()
print("end", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("time", ["now", "earlier"])
def test_overwritten_library_is_not_called(
    plugin: Callable[[str], Path], tmp_path: Path, time: str
) -> None:
    path = tmp_path / "copy.so"
    shutil.copy(plugin("all_kinds_0"), path)
    run = subprocess.run(
        [sys.executable, "-c", OVERWRITTEN, str(path), time],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (run.returncode, run.stdout.splitlines()[-1]) == (0, "end"), run.stdout + run.stderr
    assert "ran" not in run.stdout
