"""foldLinear on the models of MXNet and NNVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.graph.attributes import parse_bool, parse_float, parse_int
from passlib.graph.names import NameSource
from passlib.library.python import Graph
from passlib.passes.standard.facts.nodes import finite_as
from passlib.passes.standard.families.nodes import (
    attribute,
    can_go,
    constant,
    integers,
    is_controlled,
    operator,
    replace,
)

Factors = np.ndarray[Any, np.dtype[np.float64]]

_REAL = ("float16", "float32", "float64")


@dataclass(frozen=True)
class _Kind:
    """A layer: the axis of channels in its weights, and its attributes."""

    outputs_first: bool
    groups: str
    without_bias: bool
    """Whether there is no bias if the attribute is not given."""


_LAYERS = {
    "Convolution": _Kind(True, "num_group", False),
    "Deconvolution": _Kind(False, "num_group", True),
    "FullyConnected": _Kind(True, "", False),
}

_SCALARS = {
    "_mul_scalar": "Mul", "_div_scalar": "Div", "_plus_scalar": "Add", "_minus_scalar": "Sub",
    "_rminus_scalar": "From",
}  # fmt: skip
_ARRAYS = {
    "broadcast_mul": "Mul", "broadcast_div": "Div", "broadcast_add": "Add", "broadcast_sub": "Sub",
}  # fmt: skip


def fold_linear(graph: Graph) -> None:
    """Fold arithmetic with constants after a layer, and zero padding before it, into the layer."""
    if is_controlled(graph):
        return
    layers = [(node, _LAYERS.get(operator(graph, node))) for node in graph.sorted()]
    for node, kind in layers:
        if kind is None or len(node.inputs) < 2:
            continue
        if operator(graph, node) == "Convolution":
            _fold_padding(graph, node)
        while _fold_next(graph, node, kind):
            pass


def _fold_next(graph: Graph, node: EditableNode, kind: _Kind) -> bool:
    result = node.outputs[0]
    weight = constant(graph, node.inputs[1])
    if result.is_output or result.only_use is None or weight is None:
        return False
    if weight.dtype.name not in _REAL or weight.ndim < 2:
        return False
    user, place = result.only_use
    groups = attribute(node, kind.groups, 1, parse_int) if kind.groups else 1
    if not can_go(user) or not groups or not _has_channels_second(node):
        return False
    channels = weight.shape[0] if kind.outputs_first else weight.shape[1] * groups
    found = _affine(graph, user, place, channels, weight)
    if found is None or not _absorb(graph, node, kind, channels, *found):
        return False
    replace(graph, user, result)
    return True


def _has_channels_second(node: EditableNode) -> bool:
    return node.attrs.get("layout", "None") == "None" or node.attrs["layout"].startswith("NC")


def _affine(
    graph: Graph, user: EditableNode, place: int, channels: int, weight: np.ndarray[Any, Any]
) -> tuple[Factors, Factors] | None:
    """Return the factors and summands of an operator."""
    name = operator(graph, user)
    if name in _SCALARS:
        number = attribute(user, "scalar", 1.0, parse_float)
        if number is None:
            return None
        values, what = np.asarray(weight.dtype.type(number), np.float64).reshape(1), _SCALARS[name]
    elif name in _ARRAYS and user.inputs[0] != user.inputs[1]:
        array = constant(graph, user.inputs[1 - place])
        if array is None or array.dtype != weight.dtype or (place and name == "broadcast_div"):
            return None
        if not _is_for_channels(array.shape, weight.ndim, channels):
            return None
        values, what = np.asarray(array, np.float64).reshape(-1), _ARRAYS[name]
        if place and what == "Sub":
            what = "From"
    else:
        return None
    one, zero = np.ones(1), np.zeros(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            "Mul": (values, zero),
            "Div": (1.0 / values, zero),
            "Add": (one, values),
            "Sub": (one, -values),
            "From": (-one, values),
        }[what]


def _is_for_channels(shape: tuple[int, ...], rank: int, channels: int) -> bool:
    """Whether an array that is broadcast to results has a number for all channels, or for each."""
    if len(shape) != rank:
        return False
    return all(size == 1 or (axis == 1 and size == channels) for axis, size in enumerate(shape))


def _absorb(
    graph: Graph, node: EditableNode, kind: _Kind, channels: int, scale: Factors, shift: Factors
) -> bool:
    """Change weights and bias, unless weights are shared or a number would not be finite."""
    value = node.inputs[1]
    weight = constant(graph, value)
    assert weight is not None
    without = attribute(node, "no_bias", kind.without_bias, parse_bool)
    has_bias = without is False and len(node.inputs) > 2
    old = constant(graph, node.inputs[2]) if has_bias else np.zeros(channels, weight.dtype)
    if without is None or old is None or old.shape != (channels,):
        return False
    scales, shifts = bool(np.any(scale != 1)), bool(np.any(shift != 0))
    if scales and (not value.only_use or value.is_output):
        return False
    made = finite_as(weight * _along_weight(scale, weight, kind, channels), weight.dtype)
    bias = finite_as(np.broadcast_to(old * scale + shift, (channels,)), weight.dtype)
    if made is None or bias is None:
        return False
    if scales:
        graph.args[value.node.name] = made
    if has_bias or shifts:
        _set_bias(graph, node, bias, has_bias)
    return True


def _along_weight(
    scale: Factors, weight: np.ndarray[Any, Any], kind: _Kind, channels: int
) -> Factors:
    if scale.size == 1:
        return scale.reshape((1,) * weight.ndim)
    if kind.outputs_first:
        return scale.reshape((-1,) + (1,) * (weight.ndim - 1))
    # The weights are (inputs, channels of a group, kernel...), the groups among the inputs.
    groups = channels // weight.shape[1]
    rows = np.repeat(scale.reshape(groups, -1), weight.shape[0] // groups, axis=0)
    return rows.reshape(rows.shape + (1,) * (weight.ndim - 2))


def _set_bias(graph: Graph, node: EditableNode, bias: np.ndarray[Any, Any], has_bias: bool) -> None:
    """Set the bias of a layer; keep a shared bias unchanged."""
    if has_bias:
        value: EditableValue = node.inputs[2]
        if value.only_use and not value.is_output:
            graph.args[value.node.name] = bias
            return
    name = NameSource({other.name for other in graph.nodes}).fresh(f"{node.name}_bias")
    graph.set_inputs(node, [*node.inputs[:2], graph.add_parameter(name, bias).outputs[0]])
    node.attrs["no_bias"] = "False"


def _fold_padding(graph: Graph, node: EditableNode) -> None:
    before = node.inputs[0].node
    if operator(graph, before) != "Pad" or not can_go(before) or not before.outputs[0].only_use:
        return
    width, kernel = integers(before, "pad_width") or (), integers(node, "kernel") or ()
    rank = len(kernel) + 2
    present = integers(node, "pad")
    mode, value = before.attrs.get("mode"), attribute(before, "constant_value", 0.0, parse_float)
    if mode != "constant" or value != 0 or present is None or len(width) != 2 * rank:
        return
    pairs = list(zip(width[::2], width[1::2], strict=True))
    if any(map(any, pairs[:2])) or any(low != high or low < 0 for low, high in pairs):
        return
    old = present or (0,) * len(kernel)
    if len(old) != len(kernel) or not _has_channels_second(node):
        return
    total = [size + low for size, (low, _) in zip(old, pairs[2:], strict=True)]
    node.attrs["pad"] = f"({', '.join(map(str, total))}{',' if len(total) == 1 else ''})"
    replace(graph, before, before.inputs[0])
