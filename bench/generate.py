"""The benchmark's graphs: symbol files of any size, written without building them in memory."""

from __future__ import annotations

from pathlib import Path

__all__ = ["write_chain"]

_VARIABLE = """    {{
      "op": "null", 
      "name": "conv{i}_weight", 
      "attrs": {{
        "__dtype__": "0", 
        "__lr_mult__": "1.0", 
        "__shape__": "(64, 64, 3, 3)", 
        "__wd_mult__": "1.0"
      }}, 
      "inputs": []
    }}"""

_CONVOLUTION = """    {{
      "op": "Convolution", 
      "name": "conv{i}", 
      "attrs": {{
        "kernel": "(3, 3)", 
        "no_bias": "True", 
        "num_filter": "64", 
        "pad": "(1, 1)", 
        "stride": "(1, 1)"
      }}, 
      "inputs": [[{before}, 0, 0], [{weight}, 0, 0]]
    }}"""

_ACTIVATION = """    {{
      "op": "Activation", 
      "name": "relu{i}", 
      "attrs": {{"act_type": "relu"}}, 
      "inputs": [[{conv}, 0, 0]]
    }}"""


def write_chain(path: Path, nodes: int) -> int:
    """Write a chain of weight, Convolution, Activation behind one data input.

    Parameters
    ----------
    path : Path
    nodes : int
        At least so many; a third is added at a time.

    Returns
    -------
    int
        How many nodes it has.
    """
    thirds = (nodes - 1 + 2) // 3
    total = 1 + 3 * thirds
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write('{\n  "nodes": [\n')
        file.write('    {\n      "op": "null", \n      "name": "data", \n      "inputs": []\n    }')
        for i in range(thirds):
            weight, conv = 1 + 3 * i, 2 + 3 * i
            file.write(", \n" + _VARIABLE.format(i=i))
            file.write(", \n" + _CONVOLUTION.format(i=i, before=3 * i, weight=weight))
            file.write(", \n" + _ACTIVATION.format(i=i, conv=conv))
        variables = [0, *range(1, total, 3)]
        file.write('\n  ], \n  "arg_nodes": [\n    ')
        file.write(", \n    ".join(map(str, variables)))
        file.write('\n  ], \n  "node_row_ptr": [\n    ')
        file.write(", \n    ".join(map(str, range(total + 1))))
        file.write(f'\n  ], \n  "heads": [[{total - 1}, 0, 0]], \n')
        file.write('  "attrs": {"mxnet_version": ["int", 10901]}\n}')
    return total
