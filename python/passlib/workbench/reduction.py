"""Reduces a model to the smallest one that still shows a fault."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from passlib.errors import GraphError, PasslibError, short_repr
from passlib.model import Model
from passlib.model.graph import ModelGraph
from passlib.model.loading import AnyModel, as_model
from passlib.workbench.comparison import DRAWN, Reference, names_of_part
from passlib.workbench.delta import smallest
from passlib.workbench.failing import Differs, NothingFailsError
from passlib.workbench.numbers import Tolerance
from passlib.workbench.parts import outputs_of, with_outputs
from passlib.workbench.sampling import Sample, sample
from passlib.workbench.shrinking import (
    Failing,
    Inputs,
    Search,
    smaller,
    with_inlined,
    with_small_sizes,
    with_smaller_nested,
)
from passlib.workbench.surviving import CrashError, survived
from passlib.workbench.two_files import TwoFiles

_T = TypeVar("_T")

_MANY: Final = 5
"""A fault usually needs fewer nodes."""

_MOST_LEVELS: Final = 100
"""Maximum number of inlined nested graphs."""


@short_repr
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
    after : Model or None
        The part of the second model, between two models.

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
    after: Model | None = None

    def __str__(self) -> str:
        models = repr(self.model) if self.after is None else f"{self.model!r}, {self.after!r}"
        return f"{self.nodes_before} -> {self.nodes} nodes in {self.runs} runs: {models}"


def reduce(
    model: AnyModel,
    failing: Failing | AnyModel,
    inputs: Inputs | None = None,
    *,
    isolate: bool = False,
) -> Reduced:
    """Shrink a model while it still fails.

    Delta debugging removes nodes; their values become inputs with the values computed from
    ``inputs``. Then outputs are removed, nested graphs are inlined or lose nodes, dimensions of
    inputs and weights are reduced, and weights become constants of ones or zeros. A model that runs
    is replaced only by models that run.

    Parameters
    ----------
    failing : callable or Model
        Whether a model shows the fault on the given inputs; a `PasslibError` means no. A model is
        what some tool made of the first one, see `reduce_both`.
    inputs : mapping of str to array, optional
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
    model = as_model(model)
    if isinstance(failing, (Model, str, bytes, os.PathLike)):
        return reduce_both(model, failing, inputs=inputs)
    inputs = inputs or {}
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


Both = Callable[[Model, Model, Inputs], bool]
"""Whether the second model fails on inputs of the first one, and the first one does not."""


def reduce_both(
    before: AnyModel,
    after: AnyModel,
    failing: Both | None = None,
    inputs: Inputs | Sequence[Inputs] | None = None,
    *,
    tolerance: Tolerance | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    isolate: bool = False,
) -> Reduced:
    """Find the smallest parts of two models that still differ, whoever made the second one.

    Values are paired by what they compute, as in `bisect`. A part computes some of these values in
    both models; the values that it reads are inputs, with the numbers of the first model. Delta
    debugging finds the fewest values; a branch of If or one iteration of Loop replaces its node if
    it is enough. Then dimensions are reduced in both parts. Models of other dialects are reduced as
    ONNX models.

    Parameters
    ----------
    failing : callable, optional
        Whether two parts show the fault; a `PasslibError` means no (default: the second one
        computes other results, or does not run).
    inputs : mapping of str to array, or sequence of these, optional
        By default random inputs, see `draw_inputs`.
    shapes : mapping of str to shape, optional
        Shapes of random inputs that the model does not declare.
    isolate : bool
        Run models in forked processes. A crash of the second one alone is a fault.

    Raises
    ------
    NothingFailsError
        The models do not show the fault.
    GraphError
        The parts that compute the common values do not show the fault.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> before = pl.Model(pl.sym.exp(pl.sym.sin(pl.sym.exp(x)), name="y"))
    >>> after = pl.Model(pl.sym.exp(pl.sym.cos(pl.sym.exp(x)), name="y"))
    >>> reduced = pl.workbench.reduce_both(before, after)
    >>> [node.op for node in reduced.after.symbol.nodes() if not node.is_variable]
    ['Cos', 'Identity']
    """
    before, after = as_model(before), as_model(after)
    limits = tolerance or Tolerance()
    sampled = _isolated(lambda: sample(before, inputs, DRAWN, shapes), isolate=isolate)

    def fault(one: Model, two: Model, inputs: Inputs) -> str:
        def work() -> str:
            if failing is None:
                return fault_of(one, two, inputs, limits)
            return "test" if failing(one, two, inputs) else ""

        try:
            return _isolated(work, isolate=isolate)
        except CrashError:
            _isolated(lambda: bool(outputs_of(one, inputs)), isolate=isolate)  # must not crash, too
            return "crash"

    found = ((each, fault(before, after, each)) for each in sampled.inputs)
    fed, wanted = next(((each, what) for each, what in found if what), ({}, ""))
    if not wanted:
        gaps: tuple[str, ...] = ()
        renamed: list[str] = []
        if failing is None:
            gaps, renamed = _isolated(
                lambda: _not_shown(before, after, sampled, limits), isolate=isolate
            )
        said = ["nothing fails: the models do not show the fault", *renamed]
        raise NothingFailsError("; ".join(said), gaps)
    arrays = {name: np.asarray(value) for name, value in fed.items()}
    files = TwoFiles.of(before, after, [arrays], limits, isolate=isolate)
    runs = 1

    def fails(models: Sequence[Model], inputs: Inputs) -> bool:
        nonlocal runs
        runs += 1
        try:
            return fault(models[0], models[1], inputs) == wanted
        except PasslibError:
            return False

    def part_fails(values: list[str]) -> bool:
        try:
            one, two, inputs = files.parts(values)
        except GraphError:
            return False
        return fails([one, two], inputs)

    values = files.values()
    if not values or not part_fails(values):
        shown = (
            ""
            if failing
            else _isolated(lambda: _shown(before, after, fed, limits), isolate=isolate)
        )
        raise GraphError(
            "the second model fails, but the values that both models compute do not show it: the "
            "fault is in what no value shows, such as names, declared types or metadata"
            + (f" ({shown})" if shown else "")
        )
    chosen = smallest(values, part_fails)
    inside = list(files.inside(chosen))
    while inside:
        outer, files = files, inside.pop(0)
        if files.values() and part_fails(files.values()):
            chosen = smallest(files.values(), part_fails)
            inside = list(files.inside(chosen))
        else:
            files = outer
    one, two, inner = files.parts(chosen)
    (one, two), small = smaller([one, two], inner, fails)
    return Reduced(
        one,
        {name: small[name] for name in one.inputs},
        _count(before.symbol),
        _count(one.symbol),
        runs,
        two,
    )


def _shown(before: Model, after: Model, inputs: Inputs, tolerance: Tolerance) -> str:
    """Return how the outputs of two models differ, or why the second does not run."""
    return Differs(before, inputs, tolerance).differences(after)


def _not_shown(
    before: Model, after: Model, sampled: Sample, tolerance: Tolerance
) -> tuple[tuple[str, ...], list[str]]:
    """Return what inputs do not show of models that agree on them, and sentences on other names."""
    reference = Reference(before, sampled, tolerance=tolerance)
    found = reference.judge(after, names_of_part(before, after))
    return found.not_covered, reference.interface_changes(after)


def _isolated(work: Callable[[], _T], *, isolate: bool) -> _T:
    """Call a function, in a forked process if that is asked for."""
    return survived(work) if isolate else work()


def fault_of(one: Model, two: Model, inputs: Inputs, tolerance: Tolerance) -> str:
    """Return ``"numbers"`` if results differ, ``"run"`` if the second model does not run."""
    reference = Reference(one, inputs, tolerance=tolerance)
    names = dict(zip(one.inputs, two.inputs, strict=False))
    names = {} if set(two.inputs) <= set(inputs) else names
    try:
        return "" if reference.compare(two, names).equal else "numbers"
    except PasslibError:
        return "run"
