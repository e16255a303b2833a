"""From a model to the smallest one, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.workbench.delta import smallest
from passlib.workbench.failing import NothingFailsError
from passlib.workbench.parts import with_outputs
from passlib.workbench.reduction.nested import with_inlined, with_smaller_nested
from passlib.workbench.reduction.search import Failing, Inputs, Search
from passlib.workbench.reduction.sizes import with_small_sizes

_MANY: Final = 5
"""More nodes than a fault usually needs."""

_MOST_LEVELS: Final = 100
"""How many nested graphs take the place of their nodes, one after another."""


@dataclass(frozen=True)
class Reduced:
    """What `reduce` found.

    Attributes
    ----------
    model : Model
    inputs : mapping of str to array
        For the inputs of the model; values that the nodes before them computed are recorded ones.
    nodes_before, nodes : int
        Numbers of operators, those of nested graphs included.
    runs : int
        How often models were tested.

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
    """Make a model smaller while it still fails.

    Nodes are left out by delta debugging; values that the others take from them become inputs, with
    the values that the model computes from ``inputs``. Outputs are left out. A nested graph takes
    the place of its node where that still fails, and nodes of those that stay are left out. Then
    inputs and weights lose elements, and weights become constant, all ones or all zeros. A model
    that runs is only replaced by models that run.

    Parameters
    ----------
    model : Model
    failing : callable
        Whether a model, run on the inputs that it is given along with it, shows the fault. A
        model on which it raises a `PasslibError` does not show it.
    inputs : mapping of str to array
        For the model. Empty for a model that does not run; then types are inferred, and the
        reduced model is given no inputs.
    isolate : bool
        Test each model in a forked process, which it may crash; then it does not show the fault.

    Returns
    -------
    Reduced

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
        # What computes with constants, as folding does, may need these rather than inputs.
        kept = smallest(kept, lambda some: search.part_fails(some, constant=True))
        part, fed = search.part(kept, constant=True)
    outputs = list(part.symbol.entries)
    if len(outputs) > 1:
        fewer = smallest(outputs, lambda some: search.fails(with_outputs(part, some), fed))
        part = with_outputs(part, fewer) if len(fewer) < len(outputs) else part
    return part, fed


def _count(symbol: ModelGraph) -> int:
    """Count the operators of a graph and of those nested in it."""
    count, pending = 0, [symbol]
    while pending:
        for node in pending.pop().nodes():
            count += not node.is_variable
            pending += node.subgraphs
    return count
