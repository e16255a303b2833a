"""The operators of NNVM: their outputs, their states, and the registry that a name is from.

NNVM's own operators are those of its ``top`` registry; a file may also hold MXNet's, for which
the MXNet dialect is asked. The JSON does not state the registry of a name, and some names are in
both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from passlib.dialects.json_text import parse_plain
from passlib.errors import PasslibError
from passlib.graph.attributes import parse_int, parse_optional_ints
from passlib.graph.node import MOST_OUTPUTS
from passlib.mxnet.dialect import dialect as mxnet

TVM_OPERATOR = "tvm_op"
"""The one operator of TVM's graph executor: a call of a compiled function."""

AUXILIARY = {"batch_norm": [3, 4]}
"""Inputs of NNVM's own operators that they write to."""

PARAMETER_INPUTS = {
    "batch_norm": (1, 2, 3, 4),
    "conv2d": (1, 2),
    "conv2d_transpose": (1, 2),
    "dense": (1, 2),
    "prelu": (1,),
}
"""Inputs of NNVM's own operators that take weights."""

HIDDEN_OUTPUTS = {"batch_norm": 3, "dropout": 2}
"""Number of outputs of NNVM's own operators whose first output alone may be used."""

NOT_LOWERED = frozenset(
    [
        "arange",
        "get_valid_counts",
        "left_shift",
        "multibox_prior",
        "multibox_transform_loc",
        "non_max_suppression",
        "right_shift",
        "yolo_region",
        "yolo_reorg",
        "yolov3_yolo",
    ]
)
"""NNVM's own operators that are known by name alone."""

DECLARING = frozenset((TVM_OPERATOR, "split", "SliceChannel"))
"""Operators whose attributes declare their number of outputs."""

_ONLY_NNVM = frozenset(
    [
        "avg_pool2d",
        "batch_norm",
        "block_grad",
        "collapse_sum",
        "conv2d",
        "conv2d_transpose",
        "dense",
        "dropout",
        "elemwise_sum",
        "expand_like",
        "full",
        "full_like",
        "global_avg_pool2d",
        "global_max_pool2d",
        "l2_normalize",
        "leaky_relu",
        "lrn",
        "matmul",
        "max_pool2d",
        "prelu",
        "resize",
        "strided_slice",
        "upsampling",
    ]
)
"""Operators of NNVM whose names MXNet does not have."""

_UNSTATED_VERSION = 800
"""The version of files of MXNet that state none."""

_ONLY_MXNET = re.compile("[A-Z]|_(?!_)")
"""The beginning of names that, if MXNet has the operator, NNVM does not have."""


def declared_outputs(op: str, attributes: Mapping[str, str]) -> int:
    """Return the number of outputs that an operator's attributes declare; 0 if none."""
    try:
        if op == TVM_OPERATOR:
            count = parse_int(attributes.get("num_outputs", "0"))
        elif op == "split" and "indices_or_sections" in attributes:
            text = attributes["indices_or_sections"].strip()
            indices = parse_optional_ints(text)
            count = (indices[0] or 0) if text[:1].isdigit() else len(indices) + 1
        else:
            return 0
    except (ValueError, IndexError):
        return 0
    return count if 0 < count <= MOST_OUTPUTS else 0


def count_outputs(op: str, attributes: Mapping[str, str]) -> int:
    """Count all outputs of an operator, hidden ones included; 0 if unknown."""
    count = declared_outputs(op, attributes) or HIDDEN_OUTPUTS.get(op, 0)
    if count or op == TVM_OPERATOR:
        return count
    try:
        return mxnet.count_outputs(op, attributes)
    except (PasslibError, ValueError, TypeError, LookupError):
        return 0


def is_mxnet(operators: Iterable[str], graph_attributes: str) -> bool:
    """Whether names that both registries have denote MXNet's operators.

    They do if the graph's typed attributes, as JSON, state MXNet's version, or it has operators
    that only MXNet has and none that only NNVM has.
    """
    if "mxnet_version" in _members(graph_attributes):
        return True
    names = set(operators)
    if names & _ONLY_NNVM:
        return False
    has_operator = mxnet.has_operator
    return any(_ONLY_MXNET.match(name) and has_operator(name) for name in names)


def saved_version(graph_attributes: str) -> int:
    """Return the version of MXNet that wrote a graph, such as 10500 for 1.5.0.

    Up to 0.8.0 files state none.
    """
    pair = _members(graph_attributes).get("mxnet_version")
    if isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int:
        version: int = pair[1]
        return version
    return _UNSTATED_VERSION


def _members(graph_attributes: str) -> dict[str, Any]:
    attributes = parse_plain(graph_attributes or "{}")
    return attributes if isinstance(attributes, dict) else {}
