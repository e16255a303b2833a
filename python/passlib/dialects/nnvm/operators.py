"""What is known of operators without running them: outputs, states, and whose they are.

NNVM's own operators are those of its ``top`` registry; a file may also hold MXNet's. The JSON
does not say which registry a name is from, and some names are in both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from passlib.dialects.mxnet import legacy, schema, symbol_file
from passlib.errors import PasslibError
from passlib.graph.attribute_text import parse_int, parse_optional_ints

__all__ = [
    "AUXILIARY",
    "DECLARING",
    "HIDDEN_OUTPUTS",
    "PARAMETER_INPUTS",
    "TVM_OPERATOR",
    "auxiliary_inputs",
    "count_outputs",
    "declared_outputs",
    "is_mxnet",
    "saved_version",
]

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
"""Inputs of NNVM's own operators at which weights stand."""

HIDDEN_OUTPUTS = {"batch_norm": 3, "dropout": 2}
"""All outputs of NNVM's own operators of which only the first may be used."""

DECLARING = frozenset((TVM_OPERATOR, "split", "SliceChannel"))
"""Operators whose attributes declare their number of outputs."""

_ONLY_NNVM = frozenset(
    (
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
    )
)
"""Operators that by their names are NNVM's and not MXNet's."""


_ONLY_MXNET = re.compile("[A-Z]|_(?!_)")
"""How names of operators begin that are MXNet's and not NNVM's, if MXNet has them."""


def declared_outputs(op: str, attributes: Mapping[str, str]) -> int:
    """Count the outputs that an operator's attributes declare; 0 if they declare none."""
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
    return count if 0 < count <= 1 << 20 else 0


def count_outputs(op: str, attributes: Mapping[str, str]) -> int:
    """Count all outputs of an operator, hidden ones included; 0 if nobody knows."""
    count = declared_outputs(op, attributes) or HIDDEN_OUTPUTS.get(op, 0)
    if count or op == TVM_OPERATOR:
        return count
    try:
        return symbol_file.count_outputs(op, attributes)
    except (PasslibError, ValueError, TypeError, LookupError):
        return 0


def auxiliary_inputs() -> dict[str, list[int]]:
    """Give the inputs that are states, for the operators of both registries."""
    return {**symbol_file.auxiliary_inputs(), **AUXILIARY}


def is_mxnet(operators: Iterable[str], graph_attributes: str) -> bool:
    """Whether names that both registries have mean MXNet's operators.

    A graph is MXNet's if it has MXNet's version, or operators that only MXNet has and none that
    only NNVM has.

    Parameters
    ----------
    operators : iterable of str
    graph_attributes : str
        The typed attributes of the graph, as JSON.
    """
    if "mxnet_version" in _members(graph_attributes):
        return True
    names = set(operators)
    if names & _ONLY_NNVM:
        return False
    return any(_ONLY_MXNET.match(name) and schema.find(name) is not None for name in names)


def saved_version(graph_attributes: str) -> int:
    """Tell which version of MXNet wrote a graph, such as 10500 for 1.5.0; 0.8.0 told none.

    Parameters
    ----------
    graph_attributes : str
        The typed attributes of the graph, as JSON.
    """
    pair = _members(graph_attributes).get("mxnet_version")
    if isinstance(pair, list) and len(pair) == 2 and type(pair[1]) is int:
        version: int = pair[1]
        return version
    return legacy.UNKNOWN


def _members(graph_attributes: str) -> dict[str, Any]:
    attributes = json.loads(graph_attributes or "{}")
    return attributes if isinstance(attributes, dict) else {}
