"""Files of the JSON dialects for the benchmark, in the layout of the programs that own them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_compact = json.JSONEncoder(separators=(",", ":")).encode
_spaced = json.JSONEncoder().encode


def write_ark(path: Path, nodes: int) -> None:
    """Write an ARK model of version 3: an input, then declarations and operators in turn.

    Parameters
    ----------
    path : Path
    nodes : int
        At least 3; odd.
    """
    units: list[dict[str, Any]] = []
    made = [_ark_tensor(0, 0)]
    for number in range(nodes):
        computes = number > 0 and number % 2 == 0
        buffer = 0 if number == 0 else (number + 1) // 2
        result = _ark_tensor(number, buffer)
        reads: list[dict[str, Any]] = []
        producers: list[int] = []
        kind = ("Relu", "Add", "ScalarMul", "Mul")[number // 2 % 4]
        if computes:
            reads = [made[-2], made[0]] if kind in ("Add", "Mul") else [made[-2]]
            producers = list(dict.fromkeys([*(read["Id"] for read in reads), number - 1]))
        op = {
            "Type": kind if computes else "Tensor",
            "Name": f"{kind.lower()}_{number}" if computes else "",
            "IsVirtual": not computes,
            "ReadTensors": reads,
            "WriteTensors": [made[-1]] if computes else [],
            "ResultTensors": [result],
            "Args": {"Factor": {"FLOAT": 0.5}} if computes and kind == "ScalarMul" else {},
        }
        if number:
            made.append(result)
        if computes:
            made = [made[0], result]
        units.append({"Id": number, "ProducerNodeIds": producers, "ConsumerNodeIds": [], "Op": op})
        for producer in producers:
            units[producer]["ConsumerNodeIds"].append(number)
    path.write_text(_lines({"Rank": 0, "WorldSize": 1, "Nodes": units}, 4), "utf-8")


def _ark_tensor(number: int, buffer: int) -> dict[str, Any]:
    shape = [1, 512, 4096]
    return {
        "Id": number,
        "DataType": "FP16",
        "Shape": shape,
        "Strides": shape,
        "Offsets": [0, 0, 0],
        "PaddedShape": shape,
        "Buffer": {"Id": buffer, "Rank": -1, "SendTags": [], "RecvTags": []},
    }


def _lines(value: Any, levels: int, depth: int = 0) -> str:
    """Print with two spaces a level, and values below a number of levels on one line."""
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(item, dict) for item in value)
    )
    if not nested or not value or depth > levels:
        return _compact(value)
    if isinstance(value, dict):
        items = [f'"{key}": {_lines(item, levels, depth + 1)}' for key, item in value.items()]
    else:
        items = [_lines(item, levels, depth + 1) for item in value]
    inner = "\n" + "  " * (depth + 1)
    ends = "{}" if isinstance(value, dict) else "[]"
    return ends[0] + inner + f",{inner}".join(items) + "\n" + "  " * depth + ends[1]


def write_nnvm(path: Path, nodes: int, *, indent: bool = True) -> None:
    """Write a graph of TVM's executor: weights and calls of functions in turn.

    Parameters
    ----------
    path : Path
    nodes : int
        At least 3; odd.
    indent : bool
        In the layout of NNVM's writer, else on one line.
    """
    written: list[dict[str, Any]] = [{"op": "null", "name": "data", "inputs": []}]
    for number in range(1, nodes):
        if number % 2:
            written.append({"op": "null", "name": f"p{number // 2}", "inputs": []})
            continue
        function = {
            "flatten_data": "0",
            "func_name": f"tvmgen_default_fused_nn_dense_add_nn_relu_{number % 50}",
            "num_inputs": "2",
            "num_outputs": "1",
        }
        inputs = [[number - 2, 0, 0], [number - 1, 0, 0]]
        name = f"tvmgen_default_fused_nn_dense_add_nn_relu_{number}"
        written.append({"op": "tvm_op", "name": name, "attrs": function, "inputs": inputs})
    graph = {
        "nodes": written,
        "arg_nodes": [0, *range(1, nodes, 2)],
        "heads": [[nodes - 1, 0, 0]],
        "attrs": {
            "dltype": ["list_str", ["float32"] * nodes],
            "device_index": ["list_int", [1] * nodes],
            "storage_id": ["list_int", list(range(nodes))],
            "shape": ["list_shape", [[512, 512] if i % 2 else [1, 512] for i in range(nodes)]],
        },
        "node_row_ptr": list(range(nodes + 1)),
    }
    path.write_text(_nnvm_text(graph) if indent else _spaced(graph), "utf-8")


def _nnvm_text(graph: dict[str, Any]) -> str:
    """Print as NNVM's writer does: entries on the line of their node, long lists item by item."""
    nodes = ", \n".join(_nnvm_node(node) for node in graph["nodes"])
    members = [f'"nodes": [\n{nodes}\n  ]']
    for key in ("arg_nodes", "heads", "attrs", "node_row_ptr"):
        value = graph[key]
        if key == "attrs":
            pairs = [f'    "{k}": ["{v[0]}", {_listed(v[1], 6)}]' for k, v in value.items()]
            members.append('"attrs": {\n' + ", \n".join(pairs) + "\n  }")
        else:
            members.append(f'"{key}": {_listed(value, 4) if key != "heads" else _spaced(value)}')
    return "{\n  " + ", \n  ".join(members) + "\n}"


def _nnvm_node(node: dict[str, Any]) -> str:
    members = []
    for key, value in node.items():
        text = _spaced(value)
        if key == "attrs":
            pairs = ", \n".join(f'        "{k}": "{v}"' for k, v in value.items())
            text = "{\n" + pairs + "\n      }"
        members.append(f'      "{key}": {text}')
    return "    {\n" + ", \n".join(members) + "\n    }"


def _listed(items: list[Any], spaces: int) -> str:
    inner = "\n" + " " * spaces
    return "[" + inner + f", {inner}".join(map(_spaced, items)) + "]"


def write_dlprim(path: Path, nodes: int) -> None:
    """Write a network of convolutions, batch normalisations and activations in turn.

    Parameters
    ----------
    path : Path
    nodes : int
        Number of operators.
    """
    operators: list[dict[str, Any]] = []
    tensor = "data"
    for number in range(nodes):
        name, given = f"op{number}", tensor
        kind = ("Convolution2D", "BatchNorm", "Activation")[number % 3]
        if kind == "Convolution2D":
            tensor = f"x{number}"
            options: dict[str, Any] = {"bias": False, "groups": 1, "kernel": [3, 3]}
            options |= {"stride": [1, 1], "dilate": [1, 1], "pad": [1, 1]}
            options |= {"channels_out": 64, "channels_in": 64}
            params = [f"{name}.weight"]
        elif kind == "BatchNorm":
            tensor = f"x{number}"
            options = {"eps": 9.999999747378752e-06, "momentum": 0.10000002384185791}
            params = [f"{name}.{part}" for part in ("mean", "var", "weight", "bias")]
        else:
            options, params = {"activation": "relu"}, []
        operator = {"name": name, "type": kind, "inputs": [given], "outputs": [tensor]}
        if params:
            operator["params"] = params
        operators.append({**operator, "options": options})
    network = {
        "inputs": [{"shape": [1, 64, 56, 56], "name": "data"}],
        "outputs": [tensor],
        "operators": operators,
    }
    path.write_text(json.dumps(network, indent=4), "utf-8")
