"""Ten patterns in C++ beside onnxscript's rewriter, and a walk over a graph in Python.

Usage: patterns.py [--nodes N] [--rounds N] [--processes N]
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import onnx

import passlib
from onnx_files import write_layers
from onnx_transformer import write_transformer
from run import DATA, build_library, library_path

NODES = 100_000
COMPARED = 5_000
"""Nodes of the model for onnxscript's rewriter, which takes up to a second a thousand."""
HEAD = "| what | nodes | replaced | ms | us a node |\n|---|---|---|---|---|"


def best(run: Callable[[], object], rounds: int) -> float:
    """Return the processor time of the best round, in seconds, without freeing its result."""
    times = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        kept = run()
        times.append(time.process_time() - start)
        del kept
    return min(times)


def row(label: str, nodes: int, found: str, seconds: float) -> float:
    """Print a row of the table that begins with `HEAD`; return the microseconds a node."""
    each = seconds / nodes * 1e6
    print(f"| {label} | {nodes:,} | {found} | {seconds * 1e3:,.1f} | {each:.2f} |", flush=True)
    return each


def measure(path: Path, rounds: int) -> dict[str, float]:
    """Run ten patterns in C++ on a model, several times in this process."""
    passlib.library.load(library_path("patterns"), verbose=False)
    model = passlib.load(path)
    inside = []

    def run() -> passlib.Model:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            made = model.optimize_for("tenPatterns")
        count, seconds = printed.getvalue().split()
        inside.append((float(seconds), int(count)))
        return made

    whole = best(run, rounds)
    seconds, count = min(inside)
    operators = sum(node.op != "null" for node in model.symbol.nodes())
    return {"whole": whole, "inside": seconds, "count": count, "operators": operators}


def in_cpp(label: str, path: Path, options: argparse.Namespace) -> float:
    """Measure ten patterns in C++; return the microseconds a node without the call around.

    How the memory of a process lies decides half of the time, so the best of several counts.
    """
    command = [sys.executable, __file__, "--rounds", str(options.rounds), "--file", str(path)]
    found = []
    for _ in range(options.processes):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    operators, count = found[0]["operators"], found[0]["count"]
    seconds, whole = (min(each[key] for each in found) for key in ("inside", "whole"))
    row(f"{label}, with the call of the pass", operators, f"{count:,}", whole)
    return row(label, operators, f"{count:,}", seconds)


@passlib.graph_pass(name="walkInPython")
def walk(graph: passlib.Graph) -> None:
    """Look at operator and inputs of every node."""
    count = 0
    start = time.process_time()
    for node in graph.sorted():
        if node.op != "null":
            count += len(node.inputs)
    WALKS.append(time.process_time() - start)
    assert count > 0


WALKS: list[float] = []
"""Processor time of each walk, without the call around it."""


def in_python(path: Path, rounds: int) -> None:
    """Measure a walk in Python over all nodes, variables included."""
    model = passlib.load(path)
    nodes = len(model.symbol.nodes())
    for _ in range(rounds):
        model.optimize_for("walkInPython", skip_infer=True)
    row("a walk in Python", nodes, "", min(WALKS))


def with_onnxscript(label: str, path: Path) -> None:
    """Measure the same ten patterns with onnxscript's rewriter, once: it takes long."""
    from onnxscript import ir, rewriter

    from onnxscript_rules import RULES

    message = onnx.load(path)
    operators = len(message.graph.node)
    model = ir.serde.deserialize_model(message)
    start = time.process_time()
    count = rewriter.RewriteRuleSet(RULES, commute=True).apply_to_model(model)
    row(label, operators, f"{count:,}", time.process_time() - start)


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=3)
    parser.add_argument("--file", type=Path, help="measure this model in this process only")
    options = parser.parse_args()
    if options.file:
        print(json.dumps(measure(options.file, options.rounds)))
        return
    build_library("patterns")
    print(HEAD)
    times = {}
    for title, write in (("transformer", write_transformer), ("convolutions", write_layers)):
        for nodes in (options.nodes // 10, options.nodes):
            path = DATA / f"{title}{nodes}.onnx"
            write(path, nodes)
            times[title, nodes] = in_cpp(title, path, options)
    in_python(DATA / f"transformer{options.nodes}.onnx", options.rounds)
    small = DATA / f"transformer{COMPARED}.onnx"
    write_transformer(small, COMPARED)
    in_cpp("transformer", small, options)
    with_onnxscript("transformer, onnxscript's rewriter", small)
    for title in ("transformer", "convolutions"):
        growth = times[title, options.nodes] / times[title, options.nodes // 10]
        print(f"\n{title}: the time a node grows by {growth:.2f} with ten times the nodes")


if __name__ == "__main__":
    main()
