"""Results of the operators of tests/plugins/operators.cc, in MXNet or in passlib.

Usage: python operator_script.py {mxnet,passlib} LIBRARY

Prints one JSON object: numbers of arrays, names and graphs, by name of the step.
"""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np

mx = importlib.import_module(sys.argv[1])

FOUND = {}


def note(step, *arrays):
    """Record storage type, element type and all numbers of arrays."""
    FOUND[step] = [
        [array.stype, np.dtype(array.dtype).name, array.asnumpy().tolist()] for array in arrays
    ]


def run_on_arrays():
    """Call each operator on arrays, dense and sparse."""
    a = mx.nd.array([[1, 2, 3], [4, 5, 6]])
    b = mx.nd.array([[1, -1], [0.5, 2], [3, 0]])
    sparse = mx.nd.array([[0, 0, -1, 0], [0, 0, 0, 0], [2, 0, 0, -3]])
    note("product", mx.nd.plugin_product(a, b))
    note("into an array", mx.nd.plugin_product(a, b, out=mx.nd.zeros((2, 2))))
    note("counter", mx.nd.plugin_counter(a, start=5), mx.nd.plugin_counter(a, from_shape=1))
    total = mx.nd.ones((2, 3))
    note("accumulate", mx.nd.plugin_accumulate(a, total), total)
    note("transpose", mx.nd.plugin_transpose(sparse.tostype("csr")))
    note("rows", mx.nd.plugin_abs(sparse.tostype("row_sparse")))
    note("dense", mx.nd.plugin_abs(sparse), mx.nd.contrib.plugin_abs(sparse))
    note("reverse", mx.nd.plugin_reverse(mx.nd.arange(1000)))
    note("sums", *mx.nd.plugin_sums(a, a, inputs=2, outputs=3))
    for seed in (0, 1, 42, 2**31 - 1):
        mx.random.seed(seed)
        for draw in range(2):
            note(f"drawn {draw} with seed {seed}", mx.nd.plugin_draw(mx.nd.zeros((1024,))))


def compose():
    """Compose symbols, and record their names and graphs."""
    x, total, other = (mx.sym.var(name) for name in ("x", "total", "other"))
    symbols = {
        "states": mx.sym.plugin_accumulate(mx.sym.plugin_accumulate(x, total), other) + total,
        "many": mx.sym.plugin_sums(x, total, inputs=2, outputs=3, note=(1, 2), flag=True),
        "named": mx.sym.plugin_product(x, other, name="p", lr_mult=2, attr={"__mine__": "1"}),
        "contrib": mx.sym.contrib.plugin_abs(data=x),
    }
    for step, symbol in symbols.items():
        FOUND[step] = {
            "graph": json.loads(symbol.tojson()),
            "arguments": symbol.list_arguments(),
            "states": symbol.list_auxiliary_states(),
            "outputs": symbol.list_outputs(),
            "internals": symbol.get_internals().list_outputs(),
        }


def main():
    """Load the library and run all steps."""
    mx.library.load(sys.argv[2])
    run_on_arrays()
    compose()
    sys.stdout.write(json.dumps(FOUND) + "\n")


if __name__ == "__main__":
    main()
