"""Graphs that are drawn operator by operator, and the table of what ONNX Runtime fuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SEQUENCE, IMAGE = (2, 8, 16), (1, 16, 8, 8)
"""Shapes of what goes through a fusion: the channels are the last axis, or the second one."""


@dataclass
class Drawing:
    """A graph that grows by operators.

    Attributes
    ----------
    opset : int
    shape : tuple of int
        Of the values between its parts.
    """

    opset: int
    shape: tuple[int, ...]
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    seed: int = 0
    constants: dict[Any, str] = field(default_factory=dict)

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self.shape[1] if len(self.shape) == 4 else self.shape[-1]

    @property
    def by_channel(self) -> tuple[int, ...]:
        """The shape of what has a number for each channel."""
        return (self.channels, 1, 1) if len(self.shape) == 4 else (self.channels,)

    def of(self, array: Any, dtype: Any = np.float32) -> str:
        """Add a constant."""
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def shared(self, array: Any) -> str:
        """Return a constant, the same for the same numbers."""
        key = array.dtype.name, array.shape, array.tobytes()
        if key not in self.constants:
            self.constants[key] = self.of(array, array.dtype)
        return self.constants[key]

    def random(self, *shape: int, dtype: Any = np.float32) -> str:
        """Add random weights, away from zero."""
        self.seed += 1
        numbers = np.random.default_rng(self.seed).uniform(0.5, 1.5, shape)
        if np.dtype(dtype).kind in "iu":
            numbers = np.round(numbers * 40)
        return self.of(numbers, dtype)

    def feed(self, shape: Sequence[Any], code: int = TensorProto.FLOAT) -> str:
        """Add an input."""
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, code, shape))
        return name

    def __call__(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; return its result, or its results."""
        names = [f"v{len(self.nodes)}_{number}" for number in range(outputs)]
        domain, _, name = op.rpartition(".")
        title = f"{name}_{len(self.nodes)}"
        made = helper.make_node(name, inputs, names, name=title, domain=domain, **attributes)
        self.nodes.append(made)
        return names[0] if outputs == 1 else names

    def mean(self, value: str, axis: int = -1) -> str:
        """Add a ReduceMean of one axis."""
        if self.opset < 18:
            return str(self("ReduceMean", value, axes=[axis]))
        return str(self("ReduceMean", value, self.of([axis], np.int64)))

    def unsqueeze(self, value: str, axis: int) -> str:
        """Add an Unsqueeze of one axis."""
        if self.opset < 13:
            return str(self("Unsqueeze", value, axes=[axis]))
        return str(self("Unsqueeze", value, self.of([axis], np.int64)))

    def model(self, *results: str) -> bytes:
        """Return the model with these outputs."""
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.weights)
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        imports.append(helper.make_opsetid("ai.onnx.ml", 3))
        model = helper.make_model(graph, opset_imports=imports, ir_version=8)
        typed = onnx.shape_inference.infer_shapes(model)
        for output, inferred in zip(graph.output, typed.graph.output, strict=True):
            output.CopyFrom(inferred)
        del model.graph.output[:]
        model.graph.output.extend(graph.output)
        data: bytes = model.SerializeToString()
        return data


Part = Callable[[Drawing, str], str]


@dataclass(frozen=True)
class Fusion:
    """Operators that ONNX Runtime fuses.

    Attributes
    ----------
    part : callable
        Adds them to a graph behind a value.
    fused : str
        The operator that they become, or several, of which any will do.
    shape : tuple of int
        Of the value.
    opset : int
    sizes : tuple, optional
        What the input states instead, with names for open sizes.
    """

    part: Part
    fused: str
    shape: tuple[int, ...] = SEQUENCE
    opset: int = 17
    sizes: tuple[Any, ...] | None = None


FUSIONS: dict[str, Fusion] = {}


def fusion(
    name: str, fused: str, shape: tuple[int, ...] = SEQUENCE, opset: int = 17, **more: Any
) -> Callable[[Part], Part]:
    def register(part: Part) -> Part:
        FUSIONS[name] = Fusion(part, fused, shape, opset, **more)
        return part

    return register
