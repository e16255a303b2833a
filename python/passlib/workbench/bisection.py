"""Finds the pass that breaks a model, and the guilty rewrites of a pass or of another tool."""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib.errors import GraphError, PasslibError, printable, short_repr
from passlib.graph.node import Entry, Node
from passlib.library import find_backend
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.loading import AnyModel, as_model
from passlib.passes import Pipeline, PipelineError, simplification
from passlib.passes.instruments import target_name
from passlib.passes.isolation import IsolatedError
from passlib.workbench.comparison import drawn
from passlib.workbench.delta import smallest
from passlib.workbench.failing import Differs, NothingFailsError
from passlib.workbench.numbers import Tolerance
from passlib.workbench.rewrites import Rewrite, Rewriting, drawn_node
from passlib.workbench.surviving import CrashError, survived
from passlib.workbench.trace import State, Trace
from passlib.workbench.two_files import TwoFiles
from passlib.workbench.unstable import unstable_step


@short_repr
@dataclass(frozen=True)
class Guilty:
    """The result of `bisect`.

    Attributes
    ----------
    step : str
        The step with its options; empty between two models.
    number : int
        Number of the step, from 1.
    library : str
        Path of the library, or module of the function.
    rewrites : tuple of Rewrite
        The guilty ones; empty if the step raised an error.
    number_of_rewrites : int
        Number of independent rewrites.
    runs : int
        Number of tested models.
    before : Model
        The model without the rewrites.
    model : Model or None
        This model with only the guilty rewrites.
    others : str
        What was found about the other rewrites together; empty if they are right.
    error : PipelineError or None
        The error of the step.
    refusal : str
        Why the step's result cannot be saved, if this is the fault; otherwise empty.
    unstable : str
        Which step makes another model in each run; empty if none does.

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
    others: str = ""
    unstable: str = ""

    def __str__(self) -> str:
        where = f"guilty: step {self.number}, {self.step}, of {self.library}"
        lines = [printable(where)] if self.number else []
        if self.error is not None:
            lines.append(f"it failed: {printable(self.error.__cause__ or self.error)}")
        else:
            if self.refusal:
                lines.append(f"its result cannot be saved: {printable(self.refusal)}")
            count = len(self.rewrites)
            lines.append(f"guilty rewrites: {count} of {self.number_of_rewrites}")
            lines += map(str, self.rewrites)
        if self.model is not None:
            for word, model, side in (("before:", self.before, 0), ("after:", self.model, 1)):
                stated = [line for each in self.rewrites for line in _in_place(each, side)]
                lines += [word, *(stated or _drawn(model, self.rewrites))]
        lines += filter(None, (self.others, self.unstable))
        return "\n".join([*lines, f"{self.runs} runs"])


_MOST_SETS: Final = 10
"""More guilty sets are not looked for."""


def bisect(
    model: AnyModel,
    after: Pipeline | AnyModel,
    failing: Callable[[Model], bool] | None = None,
    *,
    isolate: bool = False,
    timeout: float | None = None,
) -> Guilty:
    """Find the guilty rewrites of a pipeline, or of any tool that made another model of this one.

    The steps of a pipeline are bisected first. Then the changes of the guilty step are split into
    independent rewrites, and delta debugging finds a minimal set of rewrites that fails. If the
    other rewrites together fail as well, a set of them is guilty, too. The passes run once, another
    time before that if isolated, and twice in a forked process to find an unstable step.

    Between two models, values are paired by what they compute, whatever their names are. A rewrite
    is what computes such a value from others. Models of other dialects are compared as ONNX models.

    Parameters
    ----------
    after : Pipeline, Model or path-like
        What made the model fail, or the failing model.
    failing : callable, optional
        Whether a model is broken, such as `CommandFails` (default: ``Differs(model)``). Between
        two models, names of inputs and outputs are no fault of `Differs`.
    isolate : bool
        Run the pipeline in a separate process first. A step that crashes, exits or hangs there is
        not run in this process; it is guilty unless its input is broken already. A result that
        cannot be saved is broken, too. Between two models: if the second one crashes a process
        that runs it on the inputs of `Differs`, find what makes it crash.
    timeout : float, optional
        Time limit of that process in seconds.

    Raises
    ------
    NothingFailsError
        The result is correct, or the model is broken before any pass.
    IsolatedError
        The isolated process ended before any pass ran.
    GraphError
        The difference between two models does not show the fault in parts.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def later_exp_to_sqrt(graph: pl.Graph) -> None:
    ...     graph.find("z").op = "sqrt"
    >>> model = pl.Model(pl.sym.exp(pl.sym.exp(pl.sym.var("x", shape=(2,))), name="z"))
    >>> guilty = pl.workbench.bisect(model, pl.Pipeline("later_exp_to_sqrt"))
    >>> len(guilty.rewrites)
    1
    >>> pl.workbench.bisect(model, model.optimize_for("later_exp_to_sqrt")).number_of_rewrites
    1
    """
    model = as_model(model)
    test = Differs(model) if failing is None else failing
    if not isinstance(after, Pipeline):
        after = as_model(after)
        return _between(model, after, test, isolate=isolate)
    runs = 0

    def fails(candidate: Model) -> bool:
        nonlocal runs
        runs += 1
        return test(candidate) or (is_refused and bool(_refusal(candidate)))

    end = _end(model, after, timeout) if isolate else None
    fatal = end if isinstance(end, IsolatedError) else None
    is_refused = isinstance(end, GraphError)
    trace, states, error = _traced(model, after, fatal)
    if not states or not fails(states[-1].after):
        if error is None:
            raise nothing_fails(after, model, states[-1].after if states else model, test)
        library = _library(_name(error))
        return Guilty(error.step, trace.count, library, (), 0, runs, error.model, None, error)
    if fails(model):
        raise NothingFailsError("the model is broken before any pass")
    # The last state is known to fail.
    number = bisect_left(range(len(states) - 1), True, key=lambda i: fails(states[i].after))
    guilty_state = states[number]
    rewriting = Rewriting(guilty_state.before, guilty_state.after)
    guilty, others = _guilty(rewriting, rewriting.rewrites, fails)
    made = rewriting.with_only(guilty)
    count = len(rewriting.rewrites)
    inside = _in_nested_graph(guilty_state.before, made, guilty, test, fails)
    if inside is not None:
        guilty, made, inner_count = inside
        count += inner_count - 1
    return Guilty(
        guilty_state.text,
        guilty_state.number,
        _library(guilty_state.name),
        tuple(guilty),
        count,
        runs,
        guilty_state.before,
        made,
        refusal=_refusal(made) if is_refused else "",
        others=others,
        unstable=_unstable(after, model),
    )


def nothing_fails(
    pipeline: Pipeline, model: Model, result: Model, test: Callable[[Model], bool]
) -> NothingFailsError:
    """Return the error that a pipeline's result is correct, with what may hide that it is not."""
    unstable = _unstable(pipeline, model)
    said = "nothing fails: the pipeline's result is correct"
    gaps = test.not_covered(result) if isinstance(test, Differs) else ()
    return NothingFailsError(f"{said}; but {unstable}" if unstable else said, gaps)


def _unstable(pipeline: Pipeline, model: Model) -> str:
    """Return a sentence about a step that makes another model in each run, or nothing."""
    try:
        return survived(lambda: unstable_step(pipeline, model)[0])
    except CrashError as error:
        return f"the pipeline is unstable: another run crashed: {error}"


def _in_nested_graph(
    before: Model,
    after: Model,
    guilty: Sequence[Rewrite],
    test: Callable[[Model], bool],
    fails: Callable[[Model], bool],
) -> tuple[list[Rewrite], Model, int] | None:
    """Find the guilty rewrites in the nested graphs of one guilty node of an ONNX model.

    Result: also the model with these alone, and the number of rewrites of the nested graphs.
    """
    changed = [node for each in guilty for kind, node, _ in each.items if kind == "body"]
    if before.dialect != "onnx" or len(guilty) > 1 or not any(n.subgraphs for n in changed):
        return None
    tolerance = test.tolerance if isinstance(test, Differs) else Tolerance()
    try:
        files = TwoFiles.of(before, after, _numbers(before, test), tolerance)
    except PasslibError:
        return None
    whole = files.suspects or files.rewrites
    found = _inside(files, whole, fails) if len(whole) == 1 else []
    if not any(each.place for each in found):
        return None
    return found, files.with_only(found), len(files.rewrites)


def _between(
    before: Model, after: Model, failing: Callable[[Model], bool], *, isolate: bool
) -> Guilty:
    """Find the rewrites that make one model fail and not the other."""
    differs = failing if isinstance(failing, Differs) else None
    runs = 1
    fault = ""
    if differs is not None and isolate and differs.crashes(after):
        failing, differs = differs.crashes, None
    elif differs is not None:
        fault = differs.fault(after)
    if differs is not None and not fault:
        said = "; ".join(["nothing fails: the second model is correct", *differs.renamed(after)])
        raise NothingFailsError(said, differs.not_covered(after))
    if differs is None and not failing(after):
        raise NothingFailsError("nothing fails: the second model is correct")

    def fails(candidate: Model) -> bool:
        nonlocal runs
        runs += 1
        return failing(candidate) if differs is None else differs.fault(candidate) == fault

    if fails(before):
        raise NothingFailsError("the first model is broken itself")
    tolerance = Tolerance() if differs is None else differs.tolerance
    numbers = _numbers(before, failing if differs is None else differs)
    # A model on which a command fails may crash this process, too.
    files = TwoFiles.of(before, after, numbers, tolerance, isolate=differs is None)
    suspects = files.suspects if _part_fails(files, files.suspects, fails) else []
    if not suspects and not _part_fails(files, files.rewrites, fails):
        shown = "" if differs is None else differs.differences(after)
        raise GraphError(
            "the second model fails, but the first one with all rewrites of its values does not: "
            "the fault is in what no value shows, such as names, declared types or metadata"
            + (f" ({shown})" if shown else "")
        )
    guilty, others = _guilty(files, suspects or files.rewrites, fails)
    return Guilty(
        "", 0, "", tuple(guilty), len(files.rewrites), runs, before, files.with_only(guilty),
        others=others,
    )  # fmt: skip


def _numbers(model: Model, failing: Callable[[Model], bool]) -> list[dict[str, Any]]:
    """Return inputs on which values are compared; none if the model does not run."""
    try:
        if isinstance(failing, Differs):
            fed = failing.inputs
        else:
            fed = survived(lambda: drawn(model, None))
    except PasslibError:
        return []
    return [{name: np.asarray(array) for name, array in each.items()} for each in fed[:_COMPARED]]


_COMPARED: Final = 2


def _part_fails(
    rewriting: Rewriting | TwoFiles, part: Sequence[Rewrite], fails: Callable[[Model], bool]
) -> bool:
    """Whether the model with some of the rewrites fails; not if these need others."""
    try:
        return bool(part) and fails(rewriting.with_only(part))
    except GraphError:
        return False


def _is_right(
    rewriting: Rewriting, part: Sequence[Rewrite], fails: Callable[[Model], bool]
) -> bool:
    """Whether the model with some of the rewrites is correct; not if these need others."""
    try:
        return not fails(rewriting.with_only(part))
    except GraphError:
        return False


def _guilty(
    rewriting: Rewriting | TwoFiles, failing: Sequence[Rewrite], fails: Callable[[Model], bool]
) -> tuple[list[Rewrite], str]:
    """Find the guilty rewrites.

    ``failing``: rewrites that fail together. Result: also what the other rewrites together do.
    """
    guilty: list[Rewrite] = []
    for _ in range(_MOST_SETS):
        found = smallest(failing, lambda part: _part_fails(rewriting, part, fails))
        if isinstance(rewriting, Rewriting) and len(found) == 1:
            # Changes of one node may be right only together.
            sharing = [*found, *rewriting.sharing(found[0])]
            if len(sharing) > 1 and _is_right(rewriting, sharing, fails):
                rewriting.join(sharing)
                failing = [each for each in rewriting.rewrites if each not in guilty]
                continue
        if isinstance(rewriting, TwoFiles):
            found = _inside(rewriting, found, fails)
        guilty += found
        others = [each for each in rewriting.rewrites if each not in guilty]
        if not others:
            return guilty, ""
        try:
            others_fail = fails(rewriting.with_only(others))
        except GraphError:
            return guilty, "the other rewrites need these: they were not tested alone"
        if not others_fail:
            return guilty, ""
        suspected = [each for each in failing if each not in guilty]
        failing = suspected if _part_fails(rewriting, suspected, fails) else others
    return guilty, "the other rewrites together fail as well"


def _smallest_with(
    files: TwoFiles,
    others: Sequence[Rewrite],
    parts: Sequence[Rewrite],
    fails: Callable[[Model], bool],
) -> list[Rewrite]:
    """Return the fewest of some rewrites that fail together with others."""
    return smallest(parts, lambda some: _part_fails(files, [*others, *some], fails))


def _inside(
    files: TwoFiles, found: Sequence[Rewrite], fails: Callable[[Model], bool]
) -> list[Rewrite]:
    """Replace guilty rewrites of an If or Loop by the guilty ones of its nested graphs."""
    guilty: list[Rewrite] = []
    pending = list(found)
    while pending:
        whole = pending.pop(0)
        parts = files.split(whole)
        rest = [*guilty, *pending]
        if not parts or not _part_fails(files, [*rest, *parts], fails):
            if parts:
                files.join(parts, whole)
            guilty.append(whole)
            continue
        kept = _smallest_with(files, rest, parts, fails)
        # Other changes at the node itself cannot be divided.
        guilty += [each for each in kept if each.items == whole.items]
        pending += [each for each in kept if each.items != whole.items]
    return guilty


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


def _in_place(rewrite: Rewrite, side: int) -> list[str]:
    """Return the nodes before or after a rewrite, behind the nested graph that they are in."""
    stated = rewrite.lines[side]
    if not stated or not rewrite.place:
        return list(stated)
    return [printable(f"  in {rewrite.place}:"), *(f"  {line}" for line in stated)]


def _drawn(model: Model, rewrites: tuple[Rewrite, ...]) -> list[str]:
    """Return a line ``name = operator(inputs)`` for each node of the rewrites."""
    names = {node.name for rewrite in rewrites for _, node, _ in rewrite.items}
    lines = []
    for node in model.symbol.nodes():
        touched = node.name in names or any(e.node.name in names for e in node.inputs)
        if touched and not node.is_variable:
            lines.append(drawn_node(node.name, node.op, [*map(_value, node.inputs)]))
    return lines


def _value(entry: Entry) -> str:
    node: Node = entry.node
    return f"{node.name}:{entry.index}" if entry.index else node.name
