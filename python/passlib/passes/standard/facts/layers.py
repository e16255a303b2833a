"""Linear layers of ONNX with constant weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.passes.standard.facts.nodes import (
    Model,
    finite_as,
    given,
    integer,
    integers,
    operator,
    text,
)

Factors = np.ndarray[Any, np.dtype[np.float64]]

_REAL = ("float16", "float32", "float64")


@dataclass
class Layer:
    """A layer that multiplies data by weights and adds a bias per channel.

    Attributes
    ----------
    rank : int or None
        Rank of the result; None if the weights do not determine it.
    """

    model: Model
    node: EditableNode
    channels: int
    rank: int | None

    @property
    def needs_rank(self) -> bool:
        """Whether the rank of the result needs inference."""
        return self.rank is None

    def by_channel(self, array: np.ndarray[Any, Any], rank: int | None) -> Factors | None:
        """Return a broadcast constant as shape (1,) or (channels,).

        None if the constant has another effect, such as a larger result.
        """
        if rank is None:
            return None
        return _along_axis(array, rank, self._axis(rank), self.channels)

    @property
    def inputs(self) -> int:
        """The number of channels of the data."""
        weight, name = self.node_weight, operator(self.node)
        if name == "Conv":
            return int(weight.shape[1] * integer(self.node, "group", 1))
        return int(weight.shape[-1 if integer(self.node, "transB", 0) else -2])

    def by_input(self, array: np.ndarray[Any, Any], rank: int | None) -> Factors | None:
        """Return a constant that is broadcast to the data, like `by_channel`."""
        if rank is None:
            return None
        return _along_axis(array, rank, self.input_axis(rank), self.inputs)

    def input_axis(self, rank: int) -> int:
        """Return the channel axis of the data."""
        return 1 if operator(self.node) == "Conv" else rank - 1

    def absorb_before(self, scale: Factors | None, shift: Factors | None) -> bool:
        """Multiply the data by ``scale`` and add ``shift``; return whether the layer changed.

        A ``shift`` requires a layer without padding.
        """
        weight = self.node_weight
        bias = self._bias()
        if bias is False or (shift is not None and not self._has_bias_and_no_padding()):
            return False
        wide = weight.astype(np.float64)
        scaled = None
        if scale is not None:
            if not self.node.inputs[1].only_use or self.node.inputs[1].is_output:
                return False
            scaled = finite_as(wide * self._along_inputs(scale), weight.dtype)
            if scaled is None:
                return False
        if shift is not None:
            products = wide * self._along_inputs(shift)
            axes = (
                tuple(range(1, weight.ndim))
                if operator(self.node) == "Conv"
                else (1 if integer(self.node, "transB", 0) else 0)
            )
            added = products.sum(axis=axes) * float(self.node.attrs.get("alpha", 1.0))
            moved = finite_as(added + (0.0 if bias is None else bias), weight.dtype)
            if moved is None:
                return False
            self._set_bias(moved)
        if scaled is not None:
            self._set(1, scaled, "weight")
        return True

    def _has_bias_and_no_padding(self) -> bool:
        name = operator(self.node)
        if name != "Conv":
            return name == "Gemm"
        padding = text(self.node, "auto_pad", "NOTSET")
        return padding == "VALID" or (
            padding == "NOTSET" and not any(integers(self.node, "pads") or ())
        )

    def _along_inputs(self, factors: Factors) -> Factors:
        weight = self.node_weight
        if factors.size == 1:
            return factors.reshape((1,) * weight.ndim)
        if operator(self.node) == "Conv":
            groups = integer(self.node, "group", 1)
            rows = np.repeat(factors.reshape(groups, -1), weight.shape[0] // groups, axis=0)
            return rows.reshape(rows.shape + (1,) * (weight.ndim - 2))
        if integer(self.node, "transB", 0):
            return factors.reshape(1, -1)
        return factors.reshape((1,) * (weight.ndim - 2) + (-1, 1))

    def absorb(self, scale: Factors | None, shift: Factors | None) -> bool:
        """Multiply the results by ``scale`` and add ``shift``; return whether the layer changed.

        It stays if a weight would not be finite, weights are shared, or it cannot have a bias.
        """
        weight = self.model.array(self.node.inputs[1])
        bias = self._bias()
        if weight is None or bias is False:
            return False
        if shift is not None and operator(self.node) == "MatMul":
            return False
        scaled = None
        if scale is not None:
            if not self.node.inputs[1].only_use or self.node.inputs[1].is_output:
                return False
            scaled = finite_as(weight * self._along_weight(scale, weight.ndim), weight.dtype)
            if scaled is None:
                return False
        moved = None
        if bias is not None or shift is not None:
            old = np.zeros(self.channels) if bias is None else bias
            total = old * (1.0 if scale is None else scale) + (0.0 if shift is None else shift)
            moved = finite_as(np.broadcast_to(total, (self.channels,)), weight.dtype)
            if moved is None:
                return False
        if scaled is not None:
            self._set(1, scaled, "weight")
        if moved is not None:
            self._set_bias(moved)
        return True

    def _axis(self, rank: int) -> int:
        return 1 if operator(self.node) in ("Conv", "ConvTranspose") else rank - 1

    def _bias(self) -> Factors | bool | None:
        """Return the bias; None if there is none, False if it is unsupported."""
        value = given(self.node, 2)
        if value is None:
            return None
        array = self.model.array(value)
        if array is None or array.size not in (1, self.channels):
            return False
        if array.ndim > 1 and array.shape[-1] != array.size:
            return False
        beta = float(self.node.attrs.get("beta", 1.0))
        return np.asarray(array.reshape(-1), np.float64) * beta

    def _along_weight(self, scale: Factors, rank: int) -> Factors:
        name = operator(self.node)
        if scale.size == 1:
            return scale.reshape((1,) * rank)
        if name == "Conv" or (name == "Gemm" and integer(self.node, "transB", 0)):
            return scale.reshape((-1,) + (1,) * (rank - 1))
        if name == "ConvTranspose":
            # The weights are (inputs, channels of a group, kernel...), the groups among the inputs.
            groups = integer(self.node, "group", 1)
            inputs = self.node_weight.shape[0]
            rows = np.repeat(scale.reshape(groups, -1), inputs // groups, axis=0)
            return rows.reshape(rows.shape + (1,) * (rank - 2))
        return scale.reshape((1,) * (rank - 1) + (-1,))

    @property
    def node_weight(self) -> np.ndarray[Any, Any]:
        """The weights."""
        array = self.model.array(self.node.inputs[1])
        assert array is not None
        return array

    def _set_bias(self, array: np.ndarray[Any, Any]) -> None:
        self._set(2, array, "bias")
        if "beta" in self.node.attrs:
            del self.node.attrs["beta"]

    def _set(self, number: int, array: np.ndarray[Any, Any], what: str) -> None:
        """Replace an array of the layer; keep it for other users."""
        old: EditableValue | None = given(self.node, number)
        if old is not None and old.only_use and not old.is_output and what == "weight":
            self.model.graph.args[old.node.name] = array
            return
        made = self.model.add_constant(f"{self.node.name}_{what}", array)
        self.model.graph.connect(made, self.node, number)
        if old is not None:
            self.model.remove_unused([old.node])


def layer_of(model: Model, node: EditableNode) -> Layer | None:
    """Return a node as a layer; None if it is no layer, or its weights are unknown or empty."""
    name = operator(node)
    if name not in ("Conv", "ConvTranspose", "Gemm", "MatMul") or node.control_deps:
        return None
    weight = model.array(given(node, 1))
    if weight is None or weight.dtype.name not in _REAL or weight.ndim < 2 or not weight.size:
        return None  # sums of no products are 0, which an infinite factor makes NaN
    if name == "MatMul":
        return Layer(model, node, weight.shape[-1], None)
    if name == "Gemm":
        return Layer(model, node, _columns(node, weight), 2) if model.opset >= 7 else None
    if name == "Conv":
        return Layer(model, node, weight.shape[0], weight.ndim)
    return Layer(model, node, weight.shape[1] * integer(node, "group", 1), weight.ndim)


def _along_axis(array: np.ndarray[Any, Any], rank: int, axis: int, channels: int) -> Factors | None:
    if array.dtype.name not in _REAL or array.ndim > rank or not array.size:
        return None
    if array.size > 1:
        sizes = (1,) * (rank - array.ndim) + array.shape
        if array.size != channels or sizes[axis] != channels:
            return None
    return np.asarray(array.reshape(-1), np.float64)


def _columns(node: EditableNode, weight: np.ndarray[Any, Any]) -> int:
    return int(weight.shape[0 if integer(node, "transB", 0) else 1])
