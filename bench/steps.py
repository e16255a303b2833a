"""Measure one tool on one file, in a process of its own, and print a line of JSON.

Usage: steps.py TOOL FILE LIBRARY REPEATS [BACKEND], where TOOL is passlib, mxnet, yyjson or json,
and BACKEND a pass or partitioner of the library, by default the pass identity.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

Step = Callable[[Any], Any]
IDENTITY = "identity"


def host_steps(host: str, library: str, backend: str) -> list[tuple[str, Step]]:
    """Load, optimize_for and tojson by passlib or MXNet."""
    mx = importlib.import_module(host)
    mx.library.load(library, verbose=False)
    return [
        ("load", mx.sym.load_json),
        ("pass", lambda symbol: symbol.optimize_for(backend)),
        ("write", lambda symbol: symbol.tojson()),
    ]


def yyjson_steps(library: str, backend: str) -> list[tuple[str, Step]]:
    """Parse and print by yyjson, without a graph."""
    import yyjson

    del library, backend
    return [("load", yyjson.Document), ("write", lambda document: document.dumps())]


def json_steps(library: str, backend: str) -> list[tuple[str, Step]]:
    """Parse and print by Python's json."""
    del library, backend
    return [("load", json.loads), ("write", json.dumps)]


TOOLS = {
    "passlib": partial(host_steps, "passlib"),
    "mxnet": partial(host_steps, "mxnet"),
    "yyjson": yyjson_steps,
    "json": json_steps,
}


def peak() -> int:
    """Return the peak resident memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


TINY = json.dumps(
    {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {
                "op": "Activation",
                "name": "relu",
                "attrs": {"act_type": "relu"},
                "inputs": [[0, 0, 0]],
            },
        ],
        "arg_nodes": [0],
        "node_row_ptr": [0, 1, 2],
        "heads": [[1, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10901]},
    }
)


def run(steps: list[tuple[str, Step]], text: str) -> tuple[dict[str, float], Any]:
    """Time one round; nothing is freed within the measured times."""
    value: Any = text
    times: dict[str, float] = {}
    kept = []
    for name, step in steps:
        start = time.perf_counter()
        value = step(value)
        times[name] = time.perf_counter() - start
        kept.append(value)
    return times, value


def main(tool: str, file: str, library: str, repeats: int, backend: str = IDENTITY) -> None:
    """Run the steps, print the times of the first round and the best of all rounds."""
    steps = TOOLS[tool](library, backend)
    run(steps, TINY)  # one-time setup of a tool
    text = Path(file).read_text("utf-8")
    before = peak()
    first, value = run(steps, text)
    growth = peak() - before
    best = dict(first)
    for _ in range(repeats - 1):
        value = None
        times, value = run(steps, text)
        best = {name: min(best[name], times[name]) for name in best}
    if (
        tool in ("passlib", "mxnet")
        and backend == IDENTITY
        and json.loads(value) != json.loads(text)
    ):
        message = f"{tool} changed the graph"
        raise SystemExit(message)
    print(json.dumps({"first": first, "best": best, "memory": growth, "text": len(text)}))


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:])
