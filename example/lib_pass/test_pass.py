"""Load libpass_lib.so, run its passes on a model, and show what they changed.

Usage: python test_pass.py [SYMBOL-FILE [OUTPUT-FILE]]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import passlib as pl

HERE = Path(__file__).parent
MODEL = HERE.parents[1] / "tests/data/mxnet/models/resnet152_v1-symbol.json"


def count_operators(symbol: pl.sym.Symbol) -> Counter[str]:
    """Count the nodes by operator."""
    return Counter("variable" if node.is_variable else node.op for node in symbol.nodes())


def show_change(before: pl.sym.Symbol, after: pl.sym.Symbol) -> None:
    """Print the number of nodes of each operator before and after."""
    old, new = count_operators(before), count_operators(after)
    print(f"{'operator':<32}{'before':>8}{'after':>8}")
    for op in sorted(old | new):
        mark = "" if old[op] == new[op] else f"{new[op] - old[op]:+8d}"
        print(f"{op:<32}{old[op]:>8}{new[op]:>8}{mark}")
    print(f"{'all':<32}{old.total():>8}{new.total():>8}")


def main() -> None:
    """Run the example."""
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else MODEL
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "optimized-symbol.json"

    library = pl.library.load(HERE / "libpass_lib.so")
    print(f"{Path(library.path).name} has the passes {', '.join(library.passes)}")

    small = pl.sym.Activation(pl.sym.var("data"), act_type="relu", name="relu")
    small.optimize_for("myPass", note="a graph of two nodes")

    model = pl.sym.load(source)
    print(f"\n{source.name}: {model}")
    smaller = model.optimize_for("dropNoOps")
    fused = smaller.optimize_for("fuseBatchNormRelu")
    show_change(model, fused)

    fused.save(target)
    print(f"\nsaved as {target}")


if __name__ == "__main__":
    main()
