"""Fold BatchNorm in two models, and compare size, results and speed.

Usage: python test_fold.py [RUNS]

RUNS is the number of timed runs of each model, 20 by default; the median counts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import passlib as pl
from passlib.lowering.lower import TypeSpec
from passlib.mxnet.lower import lower
from passlib.runtime.session import Session

HERE = Path(__file__).parent
MODELS = HERE.parents[1] / "tests/data/mxnet/models"


def count(model: pl.Model) -> tuple[int, int]:
    """Count the nodes and the BatchNorm among them."""
    nodes = model.symbol.nodes()
    return len(nodes), sum(node.op == "BatchNorm" for node in nodes)


def difference(model: pl.Model, data: np.ndarray, expected: np.ndarray) -> float:
    """Compute the difference from MXNet 1.9.1, relative to the largest output."""
    return float(np.abs(np.asarray(model(data)) - expected).max() / np.abs(expected).max())


def compile_model(model: pl.Model, data: np.ndarray, optimization: str) -> Session:
    """Compile for ONNX Runtime, on one thread, at one of its optimization levels."""
    weights = {name: np.asarray(array) for name, array in {**model.args, **model.aux}.items()}
    lowered = lower(model.symbol, {"data": TypeSpec(data.dtype, data.shape)}, weights)
    return Session(lowered, optimization=optimization, threads=1)


def print_times(label: str, actions: list[Callable[[], object]], runs: int) -> None:
    """Time actions alternately, so that other load affects all alike; print medians."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(runs):
        for action, each in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            each.append(1e3 * (time.perf_counter() - start))
    before, after = (statistics.median(each) for each in times)
    print(f"  {label:<30}{before:>10.2f}{after:>10.2f}")


def main() -> None:
    """Run the example."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    pl.library.load(HERE / "libfold_batch_norm.so")
    for name in ("mobilenet0.25", "resnet_v1_small"):
        with np.load(MODELS / f"{name}-io.npz") as recorded:
            data, expected = recorded["in/data"], recorded["out/0"]
        model = pl.load(MODELS / name)
        folded = model.optimize_for("foldBatchNorm")

        print(f"{name:<32}{'before':>10}{'after':>10}")
        for label, old, new in zip(
            ("nodes", "BatchNorm"), count(model), count(folded), strict=True
        ):
            print(f"  {label:<30}{old:>10}{new:>10}")
        old_error, new_error = (difference(each, data, expected) for each in (model, folded))
        print(f"  {'difference from MXNet':<30}{old_error:>10.1e}{new_error:>10.1e}")
        for level in ("none", "basic", "all"):
            sessions = [compile_model(each, data, level) for each in (model, folded)]
            runners = [partial(session.run, {"data": data}) for session in sessions]
            print_times(f"ms to run, optimization {level}", runners, runs)
        compilers = [partial(compile_model, each, data, "all") for each in (model, folded)]
        print_times("ms to compile", compilers, max(1, runs // 10))
        print()


if __name__ == "__main__":
    main()
