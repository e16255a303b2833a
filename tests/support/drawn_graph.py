"""An ONNX graph as it is drawn at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

Shape = tuple[int, ...]

SPECIAL = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 2.0, 0.5, 6.0, 3.0)
INTEGERS = (0, 1, -1, 2, 3, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
DOUBLE, HALF = TensorProto.DOUBLE, TensorProto.FLOAT16
_TYPES = {FLOAT: np.float32, INT: np.int64, BOOL: np.bool_}


@dataclass
class Drawn:
    """A graph as it is drawn.

    Attributes
    ----------
    random : numpy.random.Generator
    opset : int
    values : dict of str to (int, Shape)
        Element type and shape, for one choice of open sizes.
    prefix : str
        What the names of its results and constants begin with.
    """

    random: np.random.Generator
    opset: int
    values: dict[str, tuple[int, Shape]] = field(default_factory=dict)
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    feeds: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    prefix: str = ""

    def choice(self, items: Any) -> Any:
        """Return one of several items."""
        return items[int(self.random.integers(len(items)))]

    def pick(self, code: int = FLOAT, rank: int | None = None) -> str:
        """Return the name of a value of this element type; a new input if there is none."""
        names = [
            name
            for name, (kind, shape) in self.values.items()
            if kind == code and (rank is None or len(shape) == rank)
        ]
        if names:
            # Recent values more often, so that chains get long.
            return str(names[-1 - int(self.random.exponential(2)) % len(names)])
        return self.add_input(code, tuple(self.random.integers(1, 5, rank if rank else 2)))

    def shape(self, name: str) -> Shape:
        """Return the shape of a value."""
        return self.values[name][1]

    def numbers(self, code: int, shape: Shape) -> np.ndarray[Any, Any]:
        """Return random numbers, special ones among them."""
        if code == BOOL:
            return self.random.integers(0, 2, shape).astype(np.bool_)
        if code == INT:
            return self.random.choice(np.array(INTEGERS), shape)
        made = self.random.standard_normal(shape).astype(np.float32)
        if self.random.random() < 0.4:
            special = self.random.choice(np.array(SPECIAL, np.float32), shape)
            made = np.where(self.random.random(shape) < 0.3, special, made)
        return np.asarray(made, np.float32)

    def add_input(self, code: int, shape: Shape) -> str:
        """Add an input, some of whose sizes are open."""
        name = f"x{len(self.inputs)}"
        shape = tuple(int(size) for size in shape)
        dims = [f"n{size}" if self.random.random() < 0.5 else size for size in shape]
        self.inputs.append(helper.make_tensor_value_info(name, code, dims))
        self.feeds[name] = self.numbers(code, shape)
        self.values[name] = (code, shape)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Add a constant; it is no candidate for `pick`."""
        name = f"{self.prefix}c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.array(array, dtype), name))
        return name

    def add(self, op: str, inputs: list[str], code: int, *shapes: Shape, **attributes: Any) -> str:
        """Add an operator; return its first result."""
        names = [f"{self.prefix}v{len(self.nodes)}_{number}" for number in range(len(shapes))]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        for name, shape in zip(names, shapes, strict=True):
            self.values[name] = (code, tuple(int(size) for size in shape))
        return names[0]

    def axes(self, op: str, value: str, axes: list[int], shape: Shape, **attributes: Any) -> str:
        """Add an operator whose axes are an input."""
        given = self.constant(axes, np.int64)
        return self.add(op, [value, given], self.values[value][0], shape, **attributes)

    def model(self) -> Any:
        """Return the model, whose outputs are the values that nothing uses."""
        used = {name for node in self.nodes for name in node.input}
        ends = [name for name in self.values if name not in used and name[0] == "v"]
        outputs = [helper.make_tensor_value_info(name, self.values[name][0], None) for name in ends]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.initializers)
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)
