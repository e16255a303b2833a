"""Symbol files of any size for the benchmark, written without building them in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def _nodes(thirds: int) -> Iterator[dict[str, Any]]:
    yield {"op": "null", "name": "data", "inputs": []}
    for i in range(thirds):
        weight, conv = 1 + 3 * i, 2 + 3 * i
        yield {
            "op": "null",
            "name": f"conv{i}_weight",
            "attrs": {
                "__dtype__": "0",
                "__lr_mult__": "1.0",
                "__shape__": "(64, 64, 3, 3)",
                "__wd_mult__": "1.0",
            },
            "inputs": [],
        }
        yield {
            "op": "Convolution",
            "name": f"conv{i}",
            "attrs": {
                "kernel": "(3, 3)",
                "no_bias": "True",
                "num_filter": "64",
                "pad": "(1, 1)",
                "stride": "(1, 1)",
            },
            "inputs": [[3 * i, 0, 0], [weight, 0, 0]],
        }
        yield {
            "op": "Activation",
            "name": f"relu{i}",
            "attrs": {"act_type": "relu"},
            "inputs": [[conv, 0, 0]],
        }


def write_chain(path: Path, nodes: int) -> int:
    """Write a chain of weight, Convolution, Activation after one data input, on one line.

    Parameters
    ----------
    path : Path
    nodes : int
        Minimum number; three are added at a time.

    Returns
    -------
    int
        Number of nodes.
    """
    thirds = (nodes - 1 + 2) // 3
    total = 1 + 3 * thirds
    with path.open("w", encoding="utf-8", newline="") as file:
        for i, node in enumerate(_nodes(thirds)):
            file.write('{"nodes": [' if i == 0 else ", ")
            file.write(json.dumps(node))
        rest = {
            "arg_nodes": [0, *range(1, total, 3)],
            "node_row_ptr": list(range(total + 1)),
            "heads": [[total - 1, 0, 0]],
            "attrs": {"mxnet_version": ["int", 10901]},
        }
        file.write("], " + json.dumps(rest)[1:])
    return total
