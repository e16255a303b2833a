"""Reduces a model to the smallest one that still shows a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.workbench.delta import smallest
from passlib.workbench.failing import NothingFailsError
from passlib.workbench.parts import with_outputs
from passlib.workbench.shrinking import (
    Failing,
    Inputs,
    Search,
    with_inlined,
    with_small_sizes,
    with_smaller_nested,
)

_MANY: Final = 5
"""A fault usually needs fewer nodes."""

_MOST_LEVELS: Final = 100
"""Maximum number of inlined nested graphs."""


@dataclass(frozen=True)
class Reduced:
    """The result of `reduce`.

    Attributes
    ----------
    inputs : mapping of str to array
        Values of the inputs; recorded values if the inputs were computed by removed nodes.
    nodes_before, nodes : int
        Numbers of operators, including nested graphs.
    runs : int
        Number of tested models.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.relu(pl.sym.exp(pl.sym.relu(x), name="guilty")))
    >>> reduced = pl.workbench.reduce(
    ...     model,
    ...     lambda found, inputs: any(node.op == "exp" for node in found.symbol.nodes()),
    ...     {"x": pl.nd.ones((2,))},
    ... )
    >>> reduced.nodes_before, reduced.nodes
    (3, 1)
    """

    model: Model
    inputs: Inputs
    nodes_before: int
    nodes: int
    runs: int

    def __str__(self) -> str:
        return f"{self.nodes_before} -> {self.nodes} nodes in {self.runs} runs: {self.model!r}"


def reduce(model: Model, failing: Failing, inputs: Inputs, *, isolate: bool = False) -> Reduced:
    """Shrink a model while it still fails.

    Delta debugging removes nodes; their values become inputs with the values computed from
    ``inputs``. Then outputs are removed, nested graphs are inlined or lose nodes, dimensions of
    inputs and weights are reduced, and weights become constants of ones or zeros. A model that runs
    is replaced only by models that run.

    Parameters
    ----------
    failing : callable
        Whether a model shows the fault on the given inputs; a `PasslibError` means no.
    inputs : mapping of str to array
        Empty for a model that does not run; then types are inferred, and the reduced model is
        tested without inputs.
    isolate : bool
        Test each model in a forked process; a crash means that the fault is not shown.

    Raises
    ------
    NothingFailsError
        The model does not fail.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> model = pl.Model(pl.sym.relu(pl.sym.exp(pl.sym.relu(x), name="guilty")))
    >>> reduced = pl.workbench.reduce(
    ...     model,
    ...     lambda found, inputs: any(node.op == "exp" for node in found.symbol.nodes()),
    ...     {"x": pl.nd.ones((2,))},
    ... )
    >>> [node.op for node in reduced.model.symbol.nodes()]
    ['null', 'exp']
    """
    search = Search(model, failing, inputs, isolate=isolate)
    if not search.fails(model, inputs):
        raise NothingFailsError("nothing fails: the model does not show the fault")
    part, fed = _with_fewer_nodes(search, inputs)
    for _ in range(_MOST_LEVELS):
        flatter = with_inlined(search, part, fed)
        if flatter is None:
            break
        search = search.of(flatter, fed)
        part, fed = _with_fewer_nodes(search, fed)
    part = with_smaller_nested(search, part, fed)
    part, fed = with_small_sizes(search, part, fed)
    part = search.with_constant_weights(part, fed)
    return Reduced(
        part,
        {name: fed[name] for name in part.inputs if name in fed},
        _count(model.symbol),
        _count(part.symbol),
        search.runs,
    )


def _with_fewer_nodes(search: Search, inputs: Inputs) -> tuple[Model, Inputs]:
    model = search.model
    nodes = [node for node in model.symbol.nodes() if not node.is_variable]
    kept = smallest(nodes, search.part_fails)
    part, fed = search.part(kept) if len(kept) < len(nodes) else (model, inputs)
    if len(kept) > _MANY and search.part_fails(kept, constant=True):
        # Folding, for example, needs constants instead of inputs.
        kept = smallest(kept, lambda some: search.part_fails(some, constant=True))
        part, fed = search.part(kept, constant=True)
    outputs = list(part.symbol.entries)
    if len(outputs) > 1:
        fewer = smallest(outputs, lambda some: search.fails(with_outputs(part, some), fed))
        part = with_outputs(part, fewer) if len(fewer) < len(outputs) else part
    return part, fed


def _count(symbol: ModelGraph) -> int:
    """Count the operators of a graph and its nested graphs."""
    count, pending = 0, [symbol]
    while pending:
        for node in pending.pop().nodes():
            count += not node.is_variable
            pending += node.subgraphs
    return count
