"""Constants in MXNet and NNVM models, for foldConstants."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from passlib._core import EditableNode, EditableValue
from passlib.dialects import find, infer
from passlib.errors import PasslibError
from passlib.graph.names import NameSource
from passlib.library.python import Graph
from passlib.library.registry import find_operator
from passlib.passes.standard.families.nodes import constant, is_controlled

_NOT_FOLDED = re.compile(
    r"random|copyto|sample|shuffle|uniform|normal$|normal_n$|update|image|cvim|dropout|custom|quantize"
    r"|^_npi_(bernoulli|choice|exponential|gamma|gumbel|logistic|multinomial|pareto|rayleigh"
    r"|weibull)$|^_(cond|foreach|while_loop|crossdevicecopy|nogradient|set_value|sg_.*)$"
    r"|^(rnn|leakyrelu|multi_lars|reset_arrays|tvm_op|tensorrt)$",
    re.IGNORECASE,
)
"""Operators that draw random numbers, write to their inputs, run graphs or keep weights small."""


def is_function(graph: Graph, node: Any) -> bool:
    """Whether an operator is a pure function of its inputs; false for operators of libraries."""
    family = find(graph.dialect)
    return (
        find_operator(node.op) is None
        and not family.mutable_inputs(node)
        and not any(map(_NOT_FOLDED.search, (node.op, family.registered_name(node.op))))
    )


class Weights:
    """The weights of a graph, as its constants."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._names: NameSource | None = None
        self._shapes: dict[str, int] | None = None
        self._is_controlled = is_controlled(graph)

    def is_constant(self, node: EditableNode) -> bool:
        """Whether a variable is a weight."""
        return node.is_variable and node.name in self._graph.args

    def is_foldable(self, node: EditableNode) -> bool:
        """Whether an operator may be computed."""
        if self._is_controlled or node.subgraphs or not is_function(self._graph, node):
            return False
        # Outputs of the model are named after their nodes.
        return not any(value.is_output for value in node.outputs)

    def certainty(self, node: EditableNode) -> None:
        """Return None: all runtimes agree."""

    def nbytes(self, value: EditableValue) -> int:
        """Return the inferred size of a value in bytes, 0 if unknown."""
        if self._shapes is None:
            self._shapes = self._infer()
        return self._shapes.get(value.node.name, 0) if value.index == 0 else 0

    def _infer(self) -> dict[str, int]:
        plain = self._graph.plain()
        known = {name: self._graph.args[name] for name in self._graph.args}
        try:
            found = infer(
                plain,
                {name: array.shape for name, array in known.items()},
                {name: array.dtype for name, array in known.items()},
                default_dtype=np.dtype(np.float32),
            ).by_name()
        except PasslibError:  # running the model will report it
            return {}
        return {
            name: math.prod(size or 0 for size in specs[0].shape) * specs[0].dtype.itemsize
            for name, specs in found.items()
            if specs and specs[0].shape is not None and specs[0].dtype is not None
        }

    def add(self, wish: str, array: np.ndarray[Any, Any]) -> EditableValue:
        """Add a weight under a free name."""
        if self._names is None:
            self._names = NameSource({node.name for node in self._graph.nodes})
        return self._graph.add_parameter(self._names.fresh(wish), array).outputs[0]

    def remove_unused(self, nodes: Iterable[EditableNode]) -> None:
        """Remove unused nodes among these, users first, and their unused weights."""
        for node in nodes:
            if node.is_used:
                continue
            sources = {value.node for value in node.inputs}
            self._graph.remove(node)
            for source in sources:
                if constant(self._graph, source.outputs[0]) is not None and not source.is_used:
                    del self._graph.args[source.name]
                    self._graph.remove(source)
