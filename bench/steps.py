"""Measure one tool on one file, in a process of its own: prints a line of JSON.

Usage: steps.py TOOL FILE LIBRARY REPEATS, where TOOL is passlib, mxnet, yyjson or json.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Step = Callable[[Any], Any]


def passlib_steps(library: str) -> list[tuple[str, Step]]:
    """Load, optimize_for and tojson by passlib."""
    import passlib

    passlib.library.load(library, verbose=False)
    return [
        ("load", passlib.sym.load_json),
        ("pass", lambda symbol: symbol.optimize_for("identity")),
        ("write", lambda symbol: symbol.tojson()),
    ]


def mxnet_steps(library: str) -> list[tuple[str, Step]]:
    """Do the same three by MXNet."""
    import mxnet

    mxnet.library.load(library, verbose=False)
    return [
        ("load", mxnet.sym.load_json),
        ("pass", lambda symbol: symbol.optimize_for("identity")),
        ("write", lambda symbol: symbol.tojson()),
    ]


def yyjson_steps(library: str) -> list[tuple[str, Step]]:
    """Parse and print by yyjson, which knows nothing of graphs."""
    import yyjson

    del library
    return [("load", yyjson.Document), ("write", lambda document: document.dumps())]


def json_steps(library: str) -> list[tuple[str, Step]]:
    """Parse and print by Python's json."""
    del library
    return [("load", json.loads), ("write", json.dumps)]


TOOLS = {
    "passlib": passlib_steps,
    "mxnet": mxnet_steps,
    "yyjson": yyjson_steps,
    "json": json_steps,
}


def peak() -> int:
    """Peak resident memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(tool: str, file: str, library: str, repeats: int) -> None:
    """Run the steps, keep the best time of each, print them."""
    steps = TOOLS[tool](library)
    text = Path(file).read_text("utf-8")
    before = peak()
    best: dict[str, float] = {}
    growth = 0
    for round_number in range(repeats):
        value: Any = text
        kept = []  # nothing is freed inside the times
        for name, step in steps:
            start = time.perf_counter()
            value = step(value)
            best[name] = min(best.get(name, 1e9), time.perf_counter() - start)
            kept.append(value)
        if round_number == 0:
            growth = peak() - before
        if (
            round_number == repeats - 1
            and tool in ("passlib", "mxnet")
            and json.loads(value) != json.loads(text)
        ):
            message = f"{tool} did not give back what it was given"
            raise SystemExit(message)
        del kept, value
    print(json.dumps({"times": best, "memory": growth, "text": len(text)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
