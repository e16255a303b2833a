"""What a model costs, by several measures."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from passlib.dialects.onnx.nested import nested_bytes
from passlib.dialects.onnx.reading import document_of
from passlib.graph.native import WITH_GRAPHS, operators_of
from passlib.graph.plain import PlainGraph
from passlib.library.pipeline.work import work_of

CostName = Literal["nodes", "bytes", "flops", "traffic"]

COSTS: tuple[CostName, ...] = ("nodes", "bytes", "flops", "traffic")
"""What may have to fall: a field of `Cost` or of `Work`."""


class Priced(Protocol):
    """What is needed of a model."""

    @property
    def symbol(self) -> PlainGraph:
        """The graph."""

    @property
    def args(self) -> Any:
        """Weights by name."""

    @property
    def aux(self) -> Any:
        """Auxiliary states by name."""

    @property
    def dialect(self) -> str:
        """The family of models that it belongs to."""

    def optimize_for(self, name: Any, /, **options: Any) -> Any:
        """Return the model after a pass."""


class Cost(NamedTuple):
    """What a model costs.

    Attributes
    ----------
    nodes : int
        Operators, those of nested graphs included, variables and constants excluded.
    bytes : int
        Size of the weights, those of nested graphs included.
    """

    nodes: int
    bytes: int


def cost_of(model: Priced) -> Cost:
    """Return what a model costs."""
    nodes = operators_of(model.symbol.graph).total()
    size = model.args.nbytes + model.aux.nbytes
    if model.dialect == "onnx" and has_nested(model.symbol):
        size += nested_bytes(document_of(model.symbol.attributes), model.symbol.graph)
    return Cost(nodes, size)


def has_nested(symbol: PlainGraph) -> bool:
    """Whether a node has nested graphs."""
    return any(True for _ in symbol.graph.nodes_with(WITH_GRAPHS))


def rank_of(model: Priced, price: Cost, cost: CostName) -> int:
    """Return a measure of a model, whose number of operators and bytes are known."""
    if cost in Cost._fields:
        return int(getattr(price, cost))
    return int(getattr(work_of(model.symbol, {**model.args, **model.aux}), cost))
