"""Handwritten old symbol files, and the graphs that MXNet 1.9.1 makes of them.

Run inside the MXNet environment, with tests/data/legacy.json as argument, to ask MXNet again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

Graph = dict[str, Any]


def variable(name: str, **attrs: str) -> Graph:
    return {"op": "null", "name": name, "attrs": attrs, "inputs": []}


def operator(op: str, name: str, inputs: list[int], **attrs: str) -> Graph:
    return {"op": op, "name": name, "attrs": attrs, "inputs": [[i, 0] for i in inputs]}


def graph(*nodes: Graph, heads: list[list[int]] | None = None) -> Graph:
    variables = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    last = heads or [[len(nodes) - 1, 0]]
    return {"nodes": list(nodes), "arg_nodes": variables, "heads": last}


DATA = variable("data")
HIDDEN = {"ctx_group": "g", "lr_mult": "2", "force_mirroring": "True", "mirror_stage": "1"}
NORM = [variable("data"), variable("g"), variable("b"), variable("m"), variable("v", __init__="u")]

GRAPHS: dict[str, Graph] = {
    "variable": graph(variable("x", wd_mult="2", weight_lr_mult="3", lr_mult_x="4", **HIDDEN)),
    "operator": graph(
        DATA, operator("Activation", "a", [0], act_type="relu", wd_mult="0.5", **HIDDEN)
    ),
    "input_variable": graph(
        DATA,
        variable("w", lr_mult="9"),
        operator(
            "FullyConnected",
            "fc",
            [0, 1],
            num_hidden="4",
            no_bias="True",
            weight_lr_mult="3",
            weight_wd_mult="4",
            data_ctx_group="dev",
        ),
    ),
    "overridden": graph(
        DATA,
        variable("w", __lr_mult__="1"),
        operator(
            "FullyConnected",
            "fc",
            [0, 1],
            num_hidden="4",
            no_bias="True",
            weight_lr_mult="3",
            wd_mult="2",
            __wd_mult__="1",
        ),
    ),
    "shared_variable": graph(
        DATA,
        variable("w"),
        operator("FullyConnected", "a", [0, 1], num_hidden="1", no_bias="True", weight_lr_mult="3"),
        operator("FullyConnected", "b", [2, 1], num_hidden="1", no_bias="True", weight_lr_mult="5"),
    ),
    "missing_inputs": graph(
        DATA, operator("FullyConnected", "fc", [0], num_hidden="4", lr_mult="3")
    ),
    "missing_all": graph(operator("FullyConnected", "fc", [], num_hidden="4", __own__="x")),
    "missing_some": graph(
        DATA,
        variable("w"),
        operator("FullyConnected", "fc", [0, 1], num_hidden="4", weight_lr_mult="3"),
    ),
    "missing_states": graph(
        *NORM[:3],
        operator("BatchNorm", "one", [0, 1, 2], eps="0.1", __own__="3"),
        operator("BatchNorm", "two", [3], eps="0.1"),
    ),
    "missing_counted": graph(DATA, operator("Concat", "c", [0], num_args="2")),
    "initialisers": graph(*NORM, operator("BatchNorm", "bn", [0, 1, 2, 3, 4])),
    "prelu": graph(DATA, variable("g"), operator("LeakyReLU", "p", [0, 1], act_type="prelu")),
    "axis": graph(
        DATA,
        operator("argmax", "a", [0], axis="-1"),
        operator("argmin", "b", [0], axis="-1", keepdims="1"),
        operator("argmax", "c", [0], axis="1"),
        heads=[[1, 0], [2, 0], [3, 0]],
    ),
    "several_heads": graph(
        DATA,
        operator("SliceChannel", "x", [0], num_outputs="2", ctx_group="q"),
        operator("Activation", "y", [1], act_type="tanh"),
        heads=[[1, 1], [2, 0], [1, 0]],
    ),
}
VERSIONS = (None, 800, 899, 900, 903, 904, 905, 10000, 10900, 10901)
"""None: the file states no version."""


def versioned(name: str, version: int | None) -> Graph:
    if version is None:
        return GRAPHS[name]
    return {**GRAPHS[name], "attrs": {"mxnet_version": ["int", version]}}


def write(path: str) -> None:
    """Write the graph that the installed MXNet makes of each file; null where it refuses one."""
    import mxnet as mx

    def ask(name: str, version: int | None) -> Graph | None:
        try:
            symbol = mx.sym.load_json(json.dumps(versioned(name, version)))
        except mx.MXNetError:
            return None
        answer: Graph = json.loads(symbol.tojson())
        return answer

    answers = {name: {str(v): ask(name, v) for v in VERSIONS} for name in GRAPHS}
    rows = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers.items())
    Path(path).write_text("{\n" + rows + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    write(sys.argv[1])
