"""Cost of importing passlib above NumPy's, and of a call of `Model.run` above ONNX Runtime's own.

Usage: running.py [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import passlib

IMPORTS = """\
import time
start = time.process_time()
import numpy
middle = time.process_time()
import passlib
print(middle - start, time.process_time() - middle)
"""
CALLS = 2000


def import_times(rounds: int) -> tuple[float, float]:
    """Return the processor time of importing NumPy, and of passlib after it, in seconds."""
    # Without the compiled files, most of the time is that of Python's compiler.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    found = []
    for _ in range(rounds + 1):
        command = [sys.executable, "-c", IMPORTS]
        printed = subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout
        numpy_time, own = map(float, printed.split())
        found.append((numpy_time, own))
    return min(first for first, _ in found[1:]), min(second for _, second in found[1:])


def time_of(call: Callable[[], object]) -> float:
    """Return the processor time of one call, in seconds."""
    start = time.process_time()
    for _ in range(CALLS):
        call()
    return (time.process_time() - start) / CALLS


def call_times(folder: Path, rounds: int) -> tuple[float, float]:
    """Return the time of a call of ONNX Runtime, and of `Model.run`, on a model of one node."""
    shape = ["n", 4]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    path = folder / "one.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save_model(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    session = onnxruntime.InferenceSession(path)
    model = passlib.load(path)
    feeds = {"x": np.ones((2, 4), np.float32)}
    calls = (lambda: session.run(None, feeds), lambda: model.run(feeds))
    times = [[time_of(call) for call in calls] for _ in range(rounds)]
    return min(row[0] for row in times), min(row[1] for row in times)


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    base, own = import_times(rounds)
    print("| what | alone | with passlib | passlib adds |\n|---|---|---|---|")
    print(f"| import, ms | {base * 1e3:.0f} (NumPy) | {(base + own) * 1e3:.0f} | {own * 1e3:.0f} |")
    with tempfile.TemporaryDirectory() as folder:
        base, own = call_times(Path(folder), rounds)
    print(
        f"| a call, us | {base * 1e6:.1f} (ONNX Runtime) | {own * 1e6:.1f} "
        f"| {(own - base) * 1e6:.1f} |"
    )


if __name__ == "__main__":
    main()
