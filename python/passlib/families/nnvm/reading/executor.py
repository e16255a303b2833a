"""The form of graphs for TVM's graph executor: the keys that it reads, and calls of functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from passlib.families.nnvm.schema import TVM_OPERATOR, declared_outputs

NODE_KEYS = frozenset(("op", "name", "inputs", "attr", "attrs", "control_deps"))
"""The keys of a node that the executor reads."""

GRAPH_KEYS = ("nodes", "arg_nodes", "node_row_ptr", "heads", "attrs")
"""The keys of a graph that the executor reads."""

LAST_KEY = "metadata"
"""The key at which the executor stops reading."""

_ATTRIBUTES = ("func_name", "num_inputs", "num_outputs", "flatten_data")


def examine_call(node: Mapping[str, Any], outputs: int | None) -> Iterator[tuple[str, str]]:
    """Check the attributes of a ``tvm_op``.

    Parameters
    ----------
    node : mapping
        The node object; its inputs are a list.
    outputs : int or None
        Its number of outputs by ``node_row_ptr``, if that was read.

    Yields
    ------
    place, message : str
        A fault, and its path inside the node.
    """
    place = "attr" if "attr" in node and "attrs" not in node else "attrs"
    attributes, inputs = node.get(place, {}), len(node["inputs"])
    if not isinstance(attributes, dict) or not all(
        isinstance(value, str) for value in attributes.values()
    ):
        return
    for name in _ATTRIBUTES:
        if name not in attributes:
            yield place, f"a tvm_op needs the attribute {name}"
    if attributes.get("func_name") == "":
        yield f"{place}.func_name", "is empty, but a tvm_op calls a function"
    flatten = attributes.get("flatten_data", "0")
    if flatten not in ("0", "1"):
        yield f"{place}.flatten_data", f"must be '0' or '1', not {flatten!r}"
    stated = attributes.get("num_inputs")
    if stated is not None and stated != str(inputs):
        yield f"{place}.num_inputs", f"is {stated!r}, but there are {inputs} inputs"
    stated = attributes.get("num_outputs")
    count = declared_outputs(TVM_OPERATOR, attributes)
    if stated is not None and not count:
        yield f"{place}.num_outputs", f"{stated!r} is not a number of outputs"
    elif count and outputs is not None and outputs != count:
        yield f"{place}.num_outputs", f"is {stated!r}, but node_row_ptr states {outputs}"
