"""A graph as it is drawn at random, which may be nested in another one, or in a function."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import helper

from drawn_graph import FLOAT, Drawn, Shape
from passlib.dialects.onnx.nested import graphs_within


@dataclass
class Scope(Drawn):
    """A graph as it is drawn, which may be nested: values of the graphs around it are its own.

    Attributes
    ----------
    outer : Scope, optional
        The graph around it.
    depth : int
        Of graphs around it.
    own : set of str
        The values that it computes itself or gets as inputs.
    functions : list
        Of the model.
    in_function : bool
        Whether it is the body of a function, or in one.
    """

    outer: Scope | None = None
    depth: int = 0
    own: set[str] = field(default_factory=set)
    functions: list[Any] = field(default_factory=list)
    in_function: bool = False

    def add_input(self, code: int, shape: Shape) -> str:
        if self.outer is not None:
            name = self.outer.add_input(code, shape)
            self.values[name] = self.outer.values[name]
            return name
        if self.in_function:
            return self.fill(code, tuple(int(size) for size in shape))
        return super().add_input(code, shape)

    def fill(self, code: int, shape: Shape) -> str:
        """Compute a value of this shape from a constant."""
        array = self.numbers(code, ())
        name = self.axes("Expand", self.constant(array), list(shape), shape)
        self.values[name] = (code, shape)
        return name

    def constant(self, array: Any, dtype: Any = None) -> str:
        name = super().constant(array, dtype)
        if self.in_function and self.outer is None:
            tensor = self.initializers[-1]
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def axes(self, op: str, value: str, axes: list[int], shape: Shape, **attributes: Any) -> str:
        given = self.constant(axes, np.int64)
        code = self.values[value][0] if value in self.values else FLOAT
        return self.add(op, [value, given], code, shape, **attributes)

    def add(self, op: str, inputs: list[str], code: int, *shapes: Shape, **attributes: Any) -> str:
        name = super().add(op, inputs, code, *shapes, **attributes)
        self.own.update(self.nodes[-1].output)
        return name

    def inside(self, prefix: str) -> Scope:
        """Return a graph nested in this one."""
        return Scope(
            self.random, self.opset, dict(self.values), prefix=prefix, outer=self,
            depth=self.depth + 1, functions=self.functions, in_function=self.in_function,
        )  # fmt: skip

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def results(
        self, kinds: list[tuple[int, Shape | None]], inputs: list[str] | None = None
    ) -> list[str]:
        """Return outputs: no value twice, and no input.

        ONNX Runtime loses a value that is an output twice, and for inputs returns memory that
        nothing was written to.
        """
        found: list[str] = []
        for code, shape in kinds:
            name = self.result(code, shape)
            if name in found or name in (inputs or ()):
                name = self.add("Identity", [name], code, self.shape(name))
            found.append(name)
        return found

    def result(self, code: int, shape: Shape | None = None) -> str:
        """Return a value that can be an output: of this graph itself, or a copy."""
        names = [
            name
            for name, kind in self.values.items()
            if kind[0] == code and (shape is None or kind[1] == shape)
        ]
        mine = [name for name in names if name in self.own]
        if mine and self.chance(0.8):
            return str(mine[-1] if self.chance(0.6) else self.choice(mine))
        if names:
            name = self.choice(names)
            return self.add("Identity", [name], code, self.shape(name))
        return self.fill(code, shape or ())

    def graph(
        self, name: str, inputs: list[Any], outputs: list[str], *, stated: bool = False
    ) -> Any:
        """Return the nested graph."""
        infos = [self.info(output, stated=stated) for output in outputs]
        made = helper.make_graph(self.nodes, name, inputs, infos, self.initializers)
        # In one of two branches, ONNX Runtime takes the value that the other one captures.
        if name == "body" and self.chance(0.25):
            self.shadow(made)
        return made

    def shadow(self, graph: Any) -> None:
        """Give an input or a weight the name of a value around the graph that it does not use."""
        assert self.outer is not None
        known = str(graph)
        around = {*self.outer.own, *(tensor.name for tensor in self.outer.initializers)}
        free = sorted(name for name in around if f'"{name}"' not in known)
        items = [*graph.initializer, *graph.input]
        if not free or not items:
            return
        old, new = self.choice(items).name, self.choice(free)
        for inner in graphs_within(graph):
            for value in (*inner.input, *inner.output, *inner.initializer):
                value.name = new if value.name == old else value.name
            for node in inner.node:
                for names in (node.input, node.output):
                    names[:] = [new if name == old else name for name in names]

    def info(self, name: str, *, stated: bool = False) -> Any:
        """Return the description of a value; without sizes, unless it is to state them."""
        code, shape = self.values[name]
        sizes = [*shape] if stated or self.chance(0.2) else None
        return helper.make_tensor_value_info(name, code, sizes)
