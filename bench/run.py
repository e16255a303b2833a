"""The benchmark: passlib against MXNet and yyjson on the same files.

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


def library_path(name: str) -> Path:
    """Return where `build_library` puts a library."""
    return DATA / f"lib{name}.so"


def build_library(name: str = "identity") -> Path:
    """Compile a library of this folder with optimization, as an author would."""
    DATA.mkdir(exist_ok=True)
    target = library_path(name)
    command = ["g++", "-O2", "-shared", "-fPIC", "-std=c++11", "-I", str(HERE.parent / "include")]
    subprocess.run([*command, str(HERE / f"{name}.cc"), "-o", str(target)], check=True)
    return target


def measure(
    python: str, tool: str, file: Path, library: Path, repeats: int, backend: str = "identity"
) -> dict[str, Any]:
    """Run steps.py in a process of its own."""
    command = [python, str(HERE / "steps.py"), tool, str(file), str(library), str(repeats), backend]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def total(result: dict[str, Any], which: str) -> float:
    """Add up the steps, in seconds."""
    return float(sum(result[which].values()))


STEPS = ("load", "pass", "write")
HEAD = """\
| file | tool | load | pass | write | sum, ms | first round, ms | us a node | peak, bytes a node |
|---|---|---|---|---|---|---|---|---|"""


def row(name: str, tool: str, nodes: int, result: dict[str, Any]) -> str:
    """Format one measurement as a row of a table."""
    best = result["best"]
    cells = [f"{best[step] * 1e3:.1f}" if step in best else "" for step in STEPS]
    cells += [f"{total(result, which) * 1e3:.1f}" for which in ("best", "first")]
    cells += [f"{total(result, 'first') / nodes * 1e6:.2f}", f"{result['memory'] / nodes:,.0f}"]
    return f"| {name} | {tool} | {' | '.join(cells)} |"


def main() -> None:
    """Measure everything and print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", help="a Python that has MXNet 1.9.1")
    parser.add_argument("--nodes", type=int, nargs="*", default=[SMALL, LARGE])
    options = parser.parse_args()
    library = build_library()
    files = {"resnet152": (RESNET, len(json.loads(RESNET.read_text("utf-8"))["nodes"]))}
    for nodes in options.nodes:
        path = DATA / f"chain{nodes}.json"
        files[f"chain of {nodes:,}"] = (path, write_chain(path, nodes))
    print("Milliseconds, the best of several rounds in one process.\n")
    print(HEAD)
    ratios: list[tuple[str, str, str]] = []
    per_node = {}
    for name, (path, nodes) in files.items():
        large = nodes > 100_000
        repeats = 3 if large else 9
        ours = measure(sys.executable, "passlib", path, library, repeats)
        print(row(name, "passlib", nodes, ours), flush=True)
        per_node[name] = total(ours, "first") / nodes
        parser_only = measure(sys.executable, "yyjson", path, library, repeats)
        print(row(name, "yyjson", nodes, parser_only), flush=True)
        for which in ("best", "first"):
            ratio = total(ours, which) / total(parser_only, which)
            ratios.append((name, f"yyjson, {which} round", f"{ratio:.1f} times its time"))
        if options.mxnet and not large:
            theirs = measure(options.mxnet, "mxnet", path, library, 3)
            print(row(name, "MXNet", nodes, theirs), flush=True)
            for step in STEPS:
                ratio = theirs["best"][step] / ours["best"][step]
                ratios.append((name, f"MXNet, {step}", f"{ratio:.0f} times as fast"))
            ratio = total(theirs, "best") / total(ours, "best")
            ratios.append((name, "MXNet, all", f"{ratio:.0f} times as fast"))
    print("\n| file | against | passlib is |\n|---|---|---|")
    for cells in ratios:
        print(f"| {' | '.join(cells)} |")
    names = [name for name in per_node if name.startswith("chain")]
    if len(names) > 1:
        growth = per_node[names[-1]] / per_node[names[0]]
        print(f"\nTime a node, {names[-1]} against {names[0]}, first rounds: {growth:.2f}")


if __name__ == "__main__":
    main()
