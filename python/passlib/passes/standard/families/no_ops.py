"""removeNoOps on the models of MXNet, NNVM and DLPrimitives."""

from __future__ import annotations

from collections.abc import Callable

from passlib._core import EditableNode
from passlib.graph.attributes import parse_bool, parse_float, parse_int
from passlib.library.python import Graph
from passlib.passes.standard.families.nodes import (
    attribute,
    can_go,
    integers,
    is_controlled,
    operator,
    replace,
)

Rule = Callable[[EditableNode], bool]


def remove_no_ops(graph: Graph) -> None:
    """Remove operators that return their first input in inference."""
    if is_controlled(graph):
        return
    rules = _DLPRIM if graph.dialect == "dlprim" else _RULES
    for node in graph.sorted():
        if node.is_variable or not node.inputs or not can_go(node):
            continue
        name = operator(graph, node)
        rule = rules.get(name)
        if rule(node) if rule else name == "Flatten" and _only_flattened(graph, node):
            replace(graph, node, node.inputs[0])


def _always(_node: EditableNode) -> bool:
    return True


def _dropout(node: EditableNode) -> bool:
    return node.attrs.get("mode", "training") == "training"


def _of_one(node: EditableNode) -> bool:
    return len(node.inputs) == 1


def _split(node: EditableNode) -> bool:
    squeezes = attribute(node, "squeeze_axis", False, parse_bool)
    return attribute(node, "num_outputs", 0, parse_int) == 1 and squeezes is False


def _transpose(node: EditableNode) -> bool:
    axes = integers(node, "axes")
    return bool(axes) and axes == tuple(range(len(axes or ())))


def _swap(node: EditableNode) -> bool:
    first = attribute(node, "dim1", 0, parse_int)
    return first is not None and first == attribute(node, "dim2", 0, parse_int)


def _pad(node: EditableNode) -> bool:
    width = integers(node, "pad_width")
    return bool(width) and not any(width or ())


def _times_one(node: EditableNode) -> bool:
    return attribute(node, "scalar", 1.0, parse_float) == 1 and _keeps_type(node)


def _minus_zero(node: EditableNode) -> bool:
    return attribute(node, "scalar", 1.0, parse_float) == 0 and _keeps_type(node)


_NUMBERS = frozenset(
    ("Activation", "BatchNorm", "Convolution", "Deconvolution", "FullyConnected", "LayerNorm",
     "LeakyReLU", "Pooling", "SoftmaxActivation", "SoftmaxOutput", "log_softmax", "sigmoid",
     "softmax", "tanh")
)  # fmt: skip
"""Operators of MXNet whose results are no truth values."""


def _keeps_type(node: EditableNode) -> bool:
    """Whether arithmetic with a number has the type of the array, as for all but truth values."""
    whole = attribute(node, "is_int", True, parse_bool)
    return whole is True and node.inputs[0].node.op in _NUMBERS


def _only_flattened(graph: Graph, node: EditableNode) -> bool:
    """Whether all that uses the result of a Flatten is layers that flatten their data."""
    for user, number in node.outputs[0].uses:
        if operator(graph, user) != "FullyConnected" or number:
            return False
        if not attribute(user, "flatten", True, parse_bool):
            return False
    return bool(node.outputs[0].uses)


_RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("_copy", "BlockGrad", "make_loss", "MakeLoss", "_contrib_gradientmultiplier",
         "nnvm.identity", "nnvm.copy", "nnvm.block_grad", "nnvm.dropout"),
        _always,
    ),
    "Dropout": _dropout,
    **dict.fromkeys(("Concat", "add_n", "nnvm.concatenate", "nnvm.elemwise_sum"), _of_one),
    "SliceChannel": _split,
    "transpose": _transpose,
    "nnvm.transpose": _transpose,
    "SwapAxis": _swap,
    "Pad": _pad,
    "_mul_scalar": _times_one,
    "_div_scalar": _times_one,
    "_minus_scalar": _minus_zero,
}  # fmt: skip

_DLPRIM: dict[str, Rule] = {
    "Activation": lambda node: node.attrs.get("activation", "identity") == "identity",
    "Concat": _of_one,
}
