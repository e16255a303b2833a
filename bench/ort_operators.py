"""Time a call of a library's operator in ONNX Runtime, and in Model.run.

python bench/ort_operators.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

import passlib as pl
from plugin_build import PLUGINS, Builder

CALLS = 100


def seconds(run: Callable[[], object], repeats: int = 200) -> float:
    """Return the shortest time of a run."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def chain(op: str, length: int) -> pl.sym.Symbol:
    """Return a chain of one operator on few elements."""
    symbol = pl.sym.var("x")
    for _ in range(length):
        symbol = getattr(pl.sym, op)(symbol)
    return symbol


def main() -> None:
    """Print microseconds a call: the difference of a long chain and a short one."""
    builder = Builder(PLUGINS, ".so", ahead=False)
    library = builder("graph_operators")
    pl.library.load(library, verbose=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("passlib.libraries", str(library))
    options.register_custom_ops_library(pl.ort_library())
    x = np.ones((1, 4), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for op in ("tp_scale", "tp_counter", "tp_halves"):
            times: dict[str, list[float]] = {}
            for length in (1, CALLS + 1):
                symbol = chain("tp_scale" if op == "tp_halves" else op, length)
                if op == "tp_halves":
                    symbol = pl.sym.var("x")
                    for _ in range(length):
                        symbol = pl.sym.tp_halves(symbol)[0]
                model = pl.Model(symbol, {})
                file = Path(folder, f"{op}{length}.onnx")
                model.to_onnx(file, {"x": (1, 4)})
                session = onnxruntime.InferenceSession(file, options)

                def eight(run: Callable[[], object]) -> None:
                    with ThreadPoolExecutor(8) as pool:
                        list(pool.map(lambda _: [run() for _ in range(10)], range(8)))

                def run(session: onnxruntime.InferenceSession = session) -> object:
                    return session.run(None, {"x": x})

                times.setdefault("ONNX Runtime", []).append(seconds(run))
                times.setdefault("8 threads, each", []).append(
                    seconds(lambda run=run: eight(run), 5) / 80
                )
                times.setdefault("Model.run", []).append(
                    seconds(lambda model=model: model.run({"x": x}), 20)
                )
            for name, (short, long) in times.items():
                print(f"{op:12} {name:16} {(long - short) / CALLS * 1e6:7.2f} us a call")
    builder.close()


if __name__ == "__main__":
    main()
