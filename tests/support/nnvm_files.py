"""Files of NNVM and TVM for tests: genuine ones, and small ones written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import passlib
import places
from passlib import dialects

DATA = places.DATA / "nnvm"
SHARED = places.SHARED / "nnvm"
NNVM = dialects.find("nnvm")

OWN = sorted(path for path in DATA.glob("*.json") if not path.name.endswith(".golden.json"))
GOLDEN = sorted(DATA.glob("*.golden.json"))

SHARED_NAMES = (
    *(f"mxnet_zoo/{name}-symbol.json" for name in ("alexnet", "inception_v3", "mobilenet0_25")),
    *(f"mxnet_zoo/{name}-symbol.json" for name in ("resnet18_v1", "squeezenet1_1")),
    "mxnet_repo/save_000800_legacy_param_attr.json",
    "mxnet_repo/test_dnnl_model_model1.json",
    *(f"tvm/{name}.json" for name in ("crt_fused_add", "dlr_2in1out", "dlr_resnet18_model")),
    "tvm/heterogeneous_copy.json",
)

TVM_EXECUTOR = {
    "nodes": [
        {"op": "null", "name": "A", "inputs": []},
        {"op": "null", "name": "B", "inputs": []},
        {
            "op": "tvm_op",
            "name": "add",
            "attrs": {
                "flatten_data": "1",
                "func_name": "fused_add",
                "num_inputs": "2",
                "num_outputs": "1",
            },
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
        {
            "op": "tvm_op",
            "name": "relu",
            "attrs": {
                "func_name": "fused_relu",
                "flatten_data": "0",
                "num_inputs": "1",
                "num_outputs": "1",
                "hash": "0a1b",
            },
            "inputs": [[2, 0, 0]],
        },
        {
            "op": "tvm_op",
            "name": "exp",
            "attrs": {
                "func_name": "fused_exp",
                "flatten_data": "0",
                "num_inputs": "1",
                "num_outputs": "1",
            },
            "inputs": [[3, 0, 0]],
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[4, 0, 0]],
    "attrs": {
        "dltype": ["list_str", ["float32"] * 5],
        "device_index": ["list_int", [2, 2, 2, 2, 1]],
        "storage_id": ["list_int", [0, 1, 2, 3, 2]],
        "shape": ["list_shape", [[2, 3], [2, 3], [2, 3], [2, 3], [2, 3]]],
        "temp_storage_bytes": ["size_t", 48],
    },
    "node_row_ptr": [0, 1, 2, 3, 4, 5],
}
"""A chain of three calls; the first and the last one share a buffer."""

NNVM_CORE = {
    "nodes": [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "w", "inputs": []},
        {
            "op": "conv2d",
            "name": "conv",
            "attrs": {"channels": "2", "kernel_size": "[3, 3]", "use_bias": "False"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
        {"op": "relu", "name": "relu", "inputs": [[2, 0, 0]]},
        {
            "op": "split",
            "name": "halves",
            "attrs": {"indices_or_sections": "2"},
            "inputs": [[3, 0, 0]],
        },
        {
            "op": "elemwise_add",
            "name": "sum",
            "inputs": [[4, 0, 0], [4, 1, 0]],
            "control_deps": [2],
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[5, 0, 0], [3, 0, 0]],
}
"""As specified by NNVM: no row pointers, no attributes of the graph."""

LEGACY = {
    "nodes": [
        {
            "op": "null",
            "param": {},
            "name": "data",
            "inputs": [],
            "backward_source_id": -1,
            "attr": {"ctx_group": "stage1"},
        },
        {"op": "null", "param": {}, "name": "w", "inputs": [], "backward_source_id": -1},
        {
            "op": "FullyConnected",
            "param": {"no_bias": "True", "num_hidden": "4"},
            "name": "fc",
            "inputs": [[0, 0], [1, 0]],
            "backward_source_id": -1,
            "attr": {"ctx_group": "stage1", "lr_mult": "0.1"},
        },
        {
            "op": "Activation",
            "param": {"act_type": "relu"},
            "name": "act",
            "inputs": [[2, 0]],
            "backward_source_id": -1,
        },
    ],
    "arg_nodes": [0, 1],
    "heads": [[3, 0]],
}
"""The style of MXNet 0.8."""

NESTED = {
    "nodes": [
        {"op": "null", "name": "x", "inputs": []},
        {
            "op": "_foreach",
            "name": "loop",
            "attrs": {"num_outputs": "1", "in_data_locs": "[0]"},
            "inputs": [[0, 0, 0]],
            "subgraphs": [
                {
                    "nodes": [
                        {"op": "null", "name": "item", "inputs": []},
                        {"op": "relu", "name": "inner", "attrs": {"k": "v"}, "inputs": [[0, 0, 0]]},
                        {"op": "exp", "name": "unused", "inputs": [[0, 0, 0]]},
                    ],
                    "arg_nodes": [0],
                    "node_row_ptr": [0, 1, 2, 3],
                    "heads": [[1, 0, 0]],
                    "remark": 1.50,
                }
            ],
        },
        {"op": "exp", "name": "dead", "inputs": [[0, 0, 0]]},
    ],
    "arg_nodes": [0],
    "node_row_ptr": [0, 1, 2, 3],
    "heads": [[1, 0, 0]],
}

BACKWARDS = {
    "nodes": [
        {"op": "exp", "name": "last", "inputs": [[1, 0]]},
        {"op": "relu", "name": "middle", "inputs": [[2, 0, 0]]},
        {"op": "null", "name": "x", "inputs": []},
    ],
    "arg_nodes": [2],
    "heads": [[0, 0, 0]],
}
"""Every node uses later ones, which NNVM's reader accepts."""

WRITTEN = {
    "tvm_executor": TVM_EXECUTOR,
    "nnvm_core": NNVM_CORE,
    "legacy": LEGACY,
    "nested": NESTED,
    "backwards": BACKWARDS,
}


def text_of(graph: Any, indent: int | None = None) -> bytes:
    return json.dumps(graph, indent=indent).encode()


def load(path: Path) -> passlib.model.Model:
    return passlib.model.load(path, dialect="nnvm")


def saved(model: passlib.model.Model, folder: Path) -> bytes:
    target = folder / "saved.json"
    assert model.save(target) == (str(target),)
    return target.read_bytes()


def problems(graph: Any, folder: Path) -> list[dialects.Problem]:
    path = folder / "checked.json"
    path.write_bytes(text_of(graph))
    return NNVM.validate(path)
