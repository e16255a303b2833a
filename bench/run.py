"""The benchmark: passlib against MXNet and yyjson on the same files, as ratios of one run.

Usage: run.py [--mxnet PYTHON] [--nodes N ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from generate import write_chain

HERE = Path(__file__).parent
DATA = HERE / "data"
RESNET = HERE.parent / "tests/data/mxnet/models/resnet152_v1-symbol.json"
SMALL, LARGE = 30_000, 1_000_000


def build_library() -> Path:
    """Compile the identity pass as an author would, optimized."""
    target = DATA / "libidentity.so"
    command = ["g++", "-O2", "-shared", "-fPIC", "-std=c++11", "-I", str(HERE.parent / "include")]
    subprocess.run([*command, str(HERE / "identity.cc"), "-o", str(target)], check=True)
    return target


def measure(python: str, tool: str, file: Path, library: Path, repeats: int) -> dict[str, Any]:
    """Run steps.py in a process of its own."""
    command = [python, str(HERE / "steps.py"), tool, str(file), str(library), str(repeats)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    result["total"] = sum(result["times"].values())
    return result


def row(name: str, tool: str, nodes: int, result: dict[str, Any]) -> str:
    """Format one measurement as a row of a table."""
    times = result["times"]
    cells = [f"{times[step] * 1e3:.1f}" if step in times else "" for step in STEPS]
    memory = f"{result['memory'] / nodes:,.0f}"
    per_node = f"{result['total'] / nodes * 1e6:.2f}"
    return (
        f"| {name} | {tool} | {' | '.join(cells)} | {result['total'] * 1e3:.1f} | "
        f"{per_node} | {memory} |"
    )


STEPS = ("load", "pass", "write")
HEAD = """\
| file | tool | load, ms | pass, ms | write, ms | sum, ms | us a node | peak, bytes a node |
|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Measure everything and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", help="a Python that has MXNet 1.9.1")
    parser.add_argument("--nodes", type=int, nargs="*", default=[SMALL, LARGE])
    options = parser.parse_args()
    DATA.mkdir(exist_ok=True)
    library = build_library()
    files = {"resnet152": (RESNET, len(json.loads(RESNET.read_text("utf-8"))["nodes"]))}
    for nodes in options.nodes:
        path = DATA / f"chain{nodes}.json"
        files[f"chain of {nodes:,}"] = (path, write_chain(path, nodes))
    print(HEAD)
    ratios = []
    for name, (path, nodes) in files.items():
        large = nodes > 100_000
        repeats = 3 if large else 9
        ours = measure(sys.executable, "passlib", path, library, repeats)
        print(row(name, "passlib", nodes, ours), flush=True)
        parser_only = measure(sys.executable, "yyjson", path, library, repeats)
        print(row(name, "yyjson", nodes, parser_only), flush=True)
        ratios.append((name, "yyjson, parse and print", ours["total"] / parser_only["total"], "of"))
        if options.mxnet and not large:
            theirs = measure(options.mxnet, "mxnet", path, library, 3)
            print(row(name, "MXNet", nodes, theirs), flush=True)
            for step in STEPS:
                ratio = theirs["times"][step] / ours["times"][step]
                ratios.append((name, f"MXNet, {step}", ratio, "times faster than"))
            ratios.append(
                (name, "MXNet, all", theirs["total"] / ours["total"], "times faster than")
            )
    print("\n| file | against | passlib is |\n|---|---|---|")
    for name, against, ratio, words in ratios:
        figure = f"{ratio:.1f} times its time" if words == "of" else f"{ratio:.0f} times as fast"
        print(f"| {name} | {against} | {figure} |")


if __name__ == "__main__":
    main()
