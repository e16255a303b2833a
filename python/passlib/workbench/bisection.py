"""Finds the pass that breaks a model, and the guilty rewrites."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from passlib.errors import GraphError, PasslibError, printable
from passlib.graph.node import Entry, Node
from passlib.library import find_backend
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes import Pipeline, PipelineError, simplification
from passlib.passes.instruments import target_name
from passlib.passes.isolation import IsolatedError
from passlib.workbench.delta import smallest
from passlib.workbench.failing import NothingFailsError
from passlib.workbench.rewrites import Rewrite, Rewriting
from passlib.workbench.trace import State, Trace


@dataclass(frozen=True)
class Guilty:
    """The result of `bisect`.

    Attributes
    ----------
    step : str
        The step with its options.
    number : int
        Number of the step, from 1.
    library : str
        Path of the library, or module of the function.
    rewrites : tuple of Rewrite
        A minimal set of rewrites that fails; empty if the step raised an error.
    number_of_rewrites : int
        Number of independent rewrites of the step.
    runs : int
        Number of tested models.
    before : Model
        The input of the step.
    model : Model or None
        This input with only the guilty rewrites.
    error : PipelineError or None
        The error of the step.
    refusal : str
        Why the step's result cannot be saved, if this is the fault; otherwise empty.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def first_exp_to_sqrt(graph: pl.Graph) -> None:
    ...     graph.find("y").op = "sqrt"
    >>> model = pl.Model(pl.sym.exp(pl.sym.var("x", shape=(2,)), name="y"))
    >>> guilty = pl.workbench.bisect(
    ...     model, pl.Pipeline("first_exp_to_sqrt"), pl.workbench.Differs(model)
    ... )
    >>> guilty.step, guilty.number_of_rewrites
    ('first_exp_to_sqrt', 1)
    """

    step: str
    number: int
    library: str
    rewrites: tuple[Rewrite, ...]
    number_of_rewrites: int
    runs: int
    before: Model
    model: Model | None = None
    error: PipelineError | None = None
    refusal: str = ""

    def __str__(self) -> str:
        lines = [printable(f"guilty: step {self.number}, {self.step}, of {self.library}")]
        if self.error is not None:
            lines.append(f"it failed: {printable(self.error.__cause__ or self.error)}")
        else:
            if self.refusal:
                lines.append(f"its result cannot be saved: {printable(self.refusal)}")
            count = len(self.rewrites)
            lines.append(f"guilty rewrites: {count} of {self.number_of_rewrites}")
            lines += map(str, self.rewrites)
        if self.model is not None:
            lines += ["before:", *_drawn(self.before, self.rewrites)]
            lines += ["after:", *_drawn(self.model, self.rewrites)]
        return "\n".join([*lines, f"{self.runs} runs"])


def bisect(
    model: Model,
    pipeline: Pipeline,
    failing: Callable[[Model], bool],
    *,
    isolate: bool = False,
    timeout: float | None = None,
) -> Guilty:
    """Find the step of a pipeline that breaks a model, and its guilty rewrites.

    The steps are bisected first. Then the changes of the guilty step are split into independent
    rewrites, and delta debugging finds a minimal set of rewrites that fails. The passes run once,
    and another time before that if isolated.

    Parameters
    ----------
    failing : callable
        Whether a model is broken, such as `Differs` or `CommandFails`.
    isolate : bool
        Run the pipeline in a separate process first. A step that crashes, exits or hangs there is
        not run in this process; it is guilty unless its input is broken already. A result that
        cannot be saved is broken, too.
    timeout : float, optional
        Time limit of that process in seconds.

    Raises
    ------
    NothingFailsError
        The pipeline's result is correct, or the model is broken before any pass.
    IsolatedError
        The isolated process ended before any pass ran.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def later_exp_to_sqrt(graph: pl.Graph) -> None:
    ...     graph.find("z").op = "sqrt"
    >>> model = pl.Model(pl.sym.exp(pl.sym.exp(pl.sym.var("x", shape=(2,))), name="z"))
    >>> guilty = pl.workbench.bisect(
    ...     model, pl.Pipeline("later_exp_to_sqrt"), pl.workbench.Differs(model)
    ... )
    >>> len(guilty.rewrites)
    1
    """
    runs = 0

    def fails(candidate: Model) -> bool:
        nonlocal runs
        runs += 1
        return failing(candidate) or (is_refused and bool(_refusal(candidate)))

    end = _end(model, pipeline, timeout) if isolate else None
    fatal = end if isinstance(end, IsolatedError) else None
    is_refused = isinstance(end, GraphError)
    trace, states, error = _traced(model, pipeline, fatal)
    if not states or not fails(states[-1].after):
        if error is None:
            raise NothingFailsError("nothing fails: the pipeline's result is correct")
        library = _library(_name(error))
        return Guilty(error.step, trace.count, library, (), 0, runs, error.model, None, error)
    if fails(model):
        raise NothingFailsError("the model is broken before any pass")
    # The last state is known to fail.
    number = bisect_left(range(len(states) - 1), True, key=lambda i: fails(states[i].after))
    guilty_state = states[number]
    rewriting = Rewriting(guilty_state.before, guilty_state.after)

    def part_fails(part: list[Rewrite]) -> bool:
        try:
            mixed = rewriting.with_only(part)
        except GraphError:
            return False  # these rewrites need others
        return fails(mixed)

    guilty = smallest(rewriting.rewrites, part_fails)
    made = rewriting.with_only(guilty)
    return Guilty(
        guilty_state.text,
        guilty_state.number,
        _library(guilty_state.name),
        tuple(guilty),
        len(rewriting.rewrites),
        runs,
        guilty_state.before,
        made,
        refusal=_refusal(made) if is_refused else "",
    )


def _end(
    model: Model, pipeline: Pipeline, timeout: float | None
) -> IsolatedError | GraphError | None:
    """Return how the pipeline ends its process, or why its result cannot be saved."""
    try:
        pipeline.run(model, isolate=True, timeout=timeout)
    except IsolatedError as error:
        if not error.number:
            raise
        return error
    except PipelineError:
        pass  # the traced run raises it again
    except GraphError as error:
        return error
    return None


def _refusal(model: Model) -> str:
    """Return why a model cannot be saved; an empty text if it can."""
    with tempfile.TemporaryDirectory(prefix="passlib-") as folder:
        try:
            model.save(Path(folder) / target_name(model), durable=False)
        except GraphError as error:
            return str(error)
    return ""


def _traced(
    model: Model, pipeline: Pipeline, fatal: IsolatedError | None
) -> tuple[Trace, list[State], PipelineError | None]:
    trace = Trace(fatal)
    try:
        result = pipeline.run(model, [trace])
    except PipelineError as error:
        return trace, trace.states, error
    return trace, trace.chain(result.model), None


def _name(error: PipelineError) -> str:
    steps = Pipeline(error.step).steps
    if not steps or not isinstance(steps[0], Step):
        raise PasslibError(f"{error.step!r} is not a step")
    return steps[0].name


def _library(name: str) -> str:
    """Return the library of a step; ``simplifyNested`` and ``simplifyFunctions`` are no passes."""
    try:
        return find_backend(name).declaration.library
    except PasslibError:
        return simplification.__name__


def _drawn(model: Model, rewrites: tuple[Rewrite, ...]) -> list[str]:
    """Return a line ``name = operator(inputs)`` for each node of the rewrites."""
    names = {node.name for rewrite in rewrites for _, node, _ in rewrite.items}
    lines = []
    for node in model.symbol.nodes():
        touched = node.name in names or any(e.node.name in names for e in node.inputs)
        if touched and not node.is_variable:
            text = f"{node.name} = {node.op}({', '.join(map(_value, node.inputs))})"
            lines.append(f"  {printable(text)}")
    return lines


def _value(entry: Entry) -> str:
    node: Node = entry.node
    return f"{node.name}:{entry.index}" if entry.index else node.name
