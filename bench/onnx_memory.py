"""Memory and time of large ONNX models, each in a process of its own.

Usage: onnx_memory.py [folded FILE | graph FILE]

Without arguments, all models are written and measured. The memory is the peak of the process's own
(RssAnon), above what it has before a model is loaded. Pages of mapped files are not part of it: the
system has them anyway, takes them back when it wants, and some versions of Linux map megabytes for
each byte that is read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import passlib

HEAD = """\
| what | file, MB | ms | memory, MB | memory / file |
|---|---|---|---|---|"""
WEIGHTS, ROWS = 36, 4096
"""Matrices of 64 MB each, 2.3 GB in all, of a file with holes in the place of zeros."""


class Peak:
    """The most memory of its own that the process has, read every half millisecond."""

    def __init__(self) -> None:
        self.first = self.most = self._read()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._ended.wait(0.0005):
            self.most = max(self.most, self._read())

    def end(self) -> int:
        """Return the difference to the beginning, in bytes."""
        self._ended.set()
        self._thread.join()
        return max(self.most, self._read()) - self.first

    @staticmethod
    def _read() -> int:
        for line in Path("/proc/self/status").read_text("ascii").splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) * 1024
        raise ValueError("the system does not tell RssAnon")


def measure(name: str, file: Path) -> tuple[float, int]:
    """Return the processor time of the best round in ms, and the peak memory in bytes."""
    passlib.library.load_standard()
    times = []
    kept = None
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        target = Path(folder) / "out.onnx"
        peak = Peak()
        for number in range(5):
            if name == "graph" and not number:
                kept = passlib.load(file)
            start = time.process_time()
            model = kept or passlib.load(file)
            if name == "folded":
                model.optimize_for("foldBatchNormalization", skip_infer=True).save(target)
            else:
                model.optimize_for("removeDeadNodes")
            times.append(time.process_time() - start)
        memory = peak.end()
    return min(times) * 1e3, memory


def write_external(path: Path) -> None:
    """Write a chain of linear layers whose weights are in a file next to the model."""
    import onnx
    from onnx import TensorProto, helper

    size = ROWS * ROWS * 4
    nodes, weights = [], []
    for number in range(WEIGHTS):
        nodes.append(helper.make_node("MatMul", [f"x{number}", f"w{number}"], [f"x{number + 1}"]))
        weight = TensorProto(name=f"w{number}", data_type=TensorProto.FLOAT, dims=[ROWS, ROWS])
        weight.data_location = TensorProto.EXTERNAL
        places = {"location": "weights.bin", "offset": number * size, "length": size}
        for key, value in places.items():
            weight.external_data.add(key=key, value=str(value))
        weights.append(weight)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, ROWS))
        for name in ("x0", f"x{WEIGHTS}")
    ]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    imports = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=imports, ir_version=8), path)
    with (path.parent / "weights.bin").open("wb") as file:
        os.truncate(file.fileno(), WEIGHTS * size)


def main() -> None:
    """Write the models and print a table."""
    if len(sys.argv) == 3:
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]))))
        return
    from onnx_files import write_resnet
    from run import DATA

    DATA.mkdir(exist_ok=True)
    print(HEAD)
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        resnet, external = DATA / "resnet152.onnx", Path(folder) / "external.onnx"
        write_resnet(resnet)
        write_external(external)
        for label, name, file, size in (
            ("ResNet-152, load, fold, save", "folded", resnet, resnet.stat().st_size),
            (
                "external data, a pass on the graph",
                "graph",
                external,
                (external.parent / "weights.bin").stat().st_size,
            ),
        ):
            command = [sys.executable, __file__, name, str(file)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            taken, memory = json.loads(done.stdout)
            cells = [f"{size / 1e6:,.0f}", f"{taken:.1f}", f"{memory / 1e6:.0f}"]
            print(f"| {label} | {' | '.join(cells)} | {memory / size:.2f} |", flush=True)


if __name__ == "__main__":
    main()
