"""How the processor time of native code grows with the graph: linear work has a growth of 1.

Usage: growth.py [--size N]. What Python does is counted in steps by the tests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS / "support"))

import passlib  # noqa: E402
from colliding_names import colliding, named_operators  # noqa: E402
from partition_graphs import graph_text  # noqa: E402
from partition_shapes import OPS, SHAPES  # noqa: E402
from passlib.workbench.authoring import build  # noqa: E402
from run import DATA  # noqa: E402

FACTOR = 4


def seconds(text: str, work: Callable[[passlib.sym.Symbol], object]) -> float:
    """Return the processor time of the best of three rounds, each on a symbol that is read anew."""
    found = []
    for _ in range(3):
        symbol = passlib.sym.load_json(text)
        start = time.process_time()
        work(symbol)
        found.append(time.process_time() - start)
    return min(found)


def partition_text(shape: str, size: int) -> str:
    """Write a graph to partition."""
    nodes = SHAPES[shape][0](size)
    return graph_text(nodes, [len(nodes) - 1])


def written(symbol: passlib.sym.Symbol) -> None:
    """Look up each operator by its name."""
    symbol.list_arguments()
    symbol.tojson()


def main() -> None:
    """Measure everything and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=20_000, help="nodes of the smaller graph")
    size = parser.parse_args().size
    DATA.mkdir(exist_ok=True)
    source, library = TESTS / "plugins" / "partitioners.cc", DATA / "libpartitioners.so"
    passlib.library.load(build([str(source)], str(library), "release"), verbose=False)
    print("| what | us a node | growth |\n|---|---|---|")
    for backend in ("partitionSupported", "partitionSelected"):
        for shape in SHAPES:
            small, large = (
                seconds(
                    partition_text(shape, count),
                    lambda symbol: symbol.optimize_for(backend, ops=OPS),  # noqa: B023 (at once)
                )
                for count in (size, FACTOR * size)
            )
            print_row(f"{backend}, {shape}", small / size, large / small)
    bits = 11
    small, large = (seconds(named_operators(colliding(b)), written) for b in (bits, bits + 2))
    print_row("operators of one hash", small / (1 << bits), large / small)


def print_row(what: str, each: float, growth: float) -> None:
    """Print one row; the growth is that of the time a node."""
    print(f"| {what} | {each * 1e6:.2f} | {growth / FACTOR:.2f} |", flush=True)


if __name__ == "__main__":
    main()
