"""Threads with a library each, on shared symbols. These tests also run under ThreadSanitizer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import passlib as pl

THREADS = 4
ROUNDS = 8


def runs_of(symbol: pl.sym.Symbol) -> set[str]:
    nodes = json.loads(symbol.tojson())["nodes"]
    return {node["attrs"]["runs"] for node in nodes if node["op"] != "null"}


def in_all_threads(work: Callable[[int], None]) -> None:
    """Run the work in all threads at once, and raise the first exception of a thread."""
    barrier = threading.Barrier(THREADS)

    def start(number: int) -> None:
        barrier.wait()
        work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        for future in [pool.submit(start, number) for number in range(THREADS)]:
            future.result()


def test_libraries_of_all_kinds(plugin: Callable[[str], Path]) -> None:
    paths = [plugin(f"all_kinds_{number}") for number in range(THREADS)]
    x = pl.sym.var("x")
    shared = pl.sym.exp(pl.sym.sqrt(pl.sym.exp(x, name="first")), name="second")
    values = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    expected = np.exp(np.sqrt(np.exp(values)))
    before = shared.tojson()

    def work(number: int) -> None:
        library = pl.library.load(paths[number], verbose=False)
        assert library.passes == (f"countRuns{number}",)
        for run in range(1, ROUNDS + 1):
            assert runs_of(shared.optimize_for(f"countRuns{number}")) == {str(run)}
            array = pl.nd.array(values)
            part = shared.optimize_for(f"expTo{number}", {"x": array})
            ops = [node["op"] for node in json.loads(part.tojson())["nodes"]]
            assert ops == ["null", f"run_exp{number}", "sqrt", f"run_exp{number}"]
            np.testing.assert_allclose(part.eval(x=array)[0], expected, rtol=1e-5)
            added = getattr(pl.nd, f"add_number{number}")(array)
            np.testing.assert_array_equal(added, values + np.float32(number))
            counted = getattr(pl.sym, f"add_calls{number}")(shared)
            executor = counted.bind(pl.cpu(), {"x": array})
            for call in (1, 2):
                np.testing.assert_allclose(executor.forward()[0], expected + call, rtol=1e-5)

    in_all_threads(work)
    assert shared.tojson() == before


def test_one_library_in_all_threads(plugin: Callable[[str], Path]) -> None:
    pl.library.load(plugin("all_kinds_0"), verbose=False)
    x = pl.sym.var("x")
    shared = pl.sym.add_calls0(pl.sym.add_number0(pl.sym.exp(x, name="first")), name="counted")
    values = np.zeros((2, 2), dtype=np.float32)
    executor = shared.bind(pl.cpu(), {"x": pl.nd.array(values)})
    results: list[float] = []
    seen: list[str] = []

    def work(_: int) -> None:
        for _ in range(ROUNDS):
            results.append(float(executor.forward()[0][0, 0]))
            seen.extend(runs_of(shared.optimize_for("countRuns0")))

    in_all_threads(work)
    # There is one state, and every call counted exactly once.
    assert sorted(results) == [2.0 + run for run in range(THREADS * ROUNDS)]
    assert len(set(seen)) == THREADS * ROUNDS


def test_threads_of_a_pass(plugin: Callable[[str], Path]) -> None:
    """They read weights, allocate others, and ask which variables are parameters."""
    pl.library.load(plugin("tensors"), verbose=False)
    count = 40
    names = [f"w{number}" for number in range(count)]
    symbol = pl.sym.add_n(*map(pl.sym.var, ["x", *names]))
    sums = {name: f"{7.0 * number:.6f}" for number, name in enumerate(names)}
    for _ in range(ROUNDS):
        # Unaligned arrays are copied when they are asked for.
        args = {
            name: np.frombuffer(b"\0" + np.full(7, number, np.float32).tobytes(), np.float32, 7, 1)
            for number, name in enumerate(names)
        }
        found = symbol.optimize_for("sumInThreads", args, skip_infer=True).attr_dict()
        assert {name: found[name]["__sum__"] for name in names} == sums
        symbol.optimize_for("negateInThreads", args, skip_infer=True)
        for number, name in enumerate(names):
            np.testing.assert_array_equal(args[name], np.full(7, -number, np.float32))
