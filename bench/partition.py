"""Partitioning: every second operator of a chain becomes a subgraph, against loading and MXNet.

Usage: partition.py [--mxnet PYTHON] [--nodes N ...]
"""

from __future__ import annotations

import argparse
import sys

from generate import write_chain
from run import DATA, build_library, measure

COMPARED = 3_000
"""Largest graph for MXNet, whose time grows with the square of the graph."""
HEAD = """\
| nodes | subgraphs | load, ms | partition, ms | partition / load | MXNet, ms | passlib is |
|---|---|---|---|---|---|---|"""


def main() -> None:
    """Measure each size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mxnet", help="a Python that has MXNet 1.9.1")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1_000, COMPARED, 100_000])
    options = parser.parse_args()
    library = build_library("halves")
    print(HEAD)
    for wanted in options.nodes:
        path = DATA / f"chain{wanted}.json"
        nodes = write_chain(path, wanted)
        best = measure(sys.executable, "passlib", path, library, 5, "halves")["best"]
        cells = [f"{nodes:,}", f"{nodes // 3:,}", f"{best['load'] * 1e3:.1f}"]
        cells += [f"{best['pass'] * 1e3:.1f}", f"{best['pass'] / best['load']:.1f}"]
        if options.mxnet and wanted <= COMPARED:
            theirs = measure(options.mxnet, "mxnet", path, library, 2, "halves")["best"]["pass"]
            cells += [f"{theirs * 1e3:.1f}", f"{theirs / best['pass']:.0f} times as fast"]
        else:
            cells += ["", ""]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
