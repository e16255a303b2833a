"""`passlib.simplify`: the pipelines ``simplify`` and ``clean``, a loop over what passes declare."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final, get_args

import passlib._core as _core
from passlib.library.backends import NamedPipeline, is_standard, joined, register_pipeline
from passlib.library.call import Backend
from passlib.library.declared import CostClass, Declaration, Option, OptionError
from passlib.library.pipeline import Step, shape_of_text, steps_of
from passlib.model import Model, load
from passlib.model.edits import changed_nested, content_of, of_content, with_sizes
from passlib.passes.cost import COSTS, Cost, CostName, cost_of, has_nested, rank_of

Watch = Callable[[Step, Model, Callable[[], Model]], Model]
"""Runs what counts as one step on a model, by a function."""

_OPTIONS: Final = (
    Option("fixed", "text", (), "sizes of inputs, such as x:1,3,224,224", is_list=True),
    Option("skip", "text", (), "passes that are left out", is_list=True),
    Option("cost", "text", "nodes", "what has to fall for a step to be kept", COSTS),
    Option(
        "max_growth", "integer", None,
        "how many bytes the weights may grow by; by default a hundredth, at most 1 MB", low=0,
    ),
    Option("max_rounds", "integer", 16, "how often the passes run at most", low=1),
)  # fmt: skip

_LARGEST_GROWTH = 1_000_000
_SHARE = 100
"""By default weights grow by at most a hundredth, so that no file grows noticeably."""

_BYTES_OF_NODE = 64
"""What an operator takes in a file at least, with its names."""

_kept: ContextVar[dict[str, Any] | None] = ContextVar("kept", default=None)


def simplify(
    model: Model | str | os.PathLike[str] | bytes | Any,
    *,
    exact: bool = False,
    cost: CostName = "nodes",
    max_growth: int | None = None,
    max_rounds: int = 16,
    skip: Collection[str] = (),
    fixed: Mapping[str, Sequence[int | None]] | None = None,
) -> Model:
    """Return a model with fewer operators that computes the same.

    The passes that join the pipeline run one after another, round by round, and a step is kept only
    if the cost falls. Open sizes stay open, and outputs keep their names.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        What is no `Model` is loaded, see `passlib.load`.
    exact : bool
        Run only passes that keep every bit of the results. Otherwise operators are also folded
        into the weights of linear layers, which changes results by rounding.
    cost : {"nodes", "bytes", "flops", "traffic"}
        The number of operators, nested graphs included; the size of the weights; or, with open
        sizes taken for 1 and nested graphs left out, an estimate of the arithmetic operations of
        one run, or of the bytes that operators read and write. The number of operators and the
        size of the weights decide between equals.
    max_growth : int, optional
        By how many bytes the weights may grow in all; by default by a hundredth, and at most by
        1 MB. Each operator that is gone makes room for 64 bytes more.
    max_rounds : int
        At most so many rounds are run.
    skip : collection of str
        Passes that are left out.
    fixed : mapping of str to shape, optional
        Sizes of the inputs of an ONNX model, which the result states; ``None`` in a shape leaves a
        size open. Computations with them become constants.

    Returns
    -------
    Model

    Raises
    ------
    PasslibError
        The model cannot be loaded, or a pass failed; or a name in ``fixed`` is no input, its shape
        contradicts the model's, or the model is of another dialect.
    ValueError
        ``cost`` is something else.

    Examples
    --------
    >>> import passlib
    >>> passlib.simplify("model.onnx").save("smaller.onnx")  # doctest: +SKIP
    """
    found = model if isinstance(model, Model) else load(model)
    return found.simplify(
        exact=exact,
        cost=cost,
        max_growth=max_growth,
        max_rounds=max_rounds,
        skip=skip,
        fixed=fixed,
    )


@contextmanager
def sharing(**given: Any) -> Iterator[None]:
    """Let passes keep facts about values for the passes that run after them.

    All passes inside must leave the value of each node that stays as it is. ``given`` is what is
    known at the beginning.
    """
    token = _kept.set(given)
    try:
        yield
    finally:
        _kept.reset(token)


def kept() -> dict[str, Any] | None:
    """Return what passes keep by the name of the subject; None if each is on its own."""
    return _kept.get()


class Simplification(NamedPipeline):
    """A pipeline that runs the passes which join it, until the cost falls no more."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Check that ``skip`` names passes.

        Raises
        ------
        OptionError
            One is neither a standard pass nor part of the pipeline.
        """
        known = {backend.declaration.name for backend in joined(self.declaration.name)}
        for name in options.get("skip", ()):
            if name not in known and not is_standard(name):
                raise OptionError(f"option 'skip': there is no standard pass {name!r}", "skip")

    def run(self, model: Model, options: Mapping[str, Any], watch: Watch | None = None) -> Model:
        """Return the simplified model.

        ``simplifyNested`` is the step that simplifies nested graphs, each as a model of its own.

        Parameters
        ----------
        model : Model
        options : mapping
            Checked ones, or the arguments of `simplify`.
        watch : callable, optional
            Runs each pass that is tried.

        Raises
        ------
        OptionError
            An item of ``fixed`` is no shape of an input, or one of ``skip`` no pass.
        """
        self.check(options)
        given = dict(options)
        fixed = given.pop("fixed", None) or {}
        if not isinstance(fixed, Mapping):
            try:
                fixed = dict(map(shape_of_text, fixed))
            except ValueError as error:
                raise OptionError(f"option 'fixed': {error}", "fixed") from None
        if fixed:
            model = with_sizes(model, fixed)
        run = _Run(self, watch or (lambda step, subject, body: body()), **given)
        made = run.rounds(model)
        if not has_nested(made.symbol):
            return made
        inside = run.watch(Step("simplifyNested"), made, lambda: self._nested(made, given))
        while cost_of(inside) < cost_of(made):  # each time for a smaller model
            made = run.rounds(inside)
            inside = self._nested(made, given)
            if inside is not made:  # mostly nothing is left to do, which is no step of its own
                inside = run.watch(Step("simplifyNested"), made, partial(_itself, inside))
        return made

    def _nested(self, model: Model, options: Mapping[str, Any]) -> Model:
        """Return a model with its nested graphs simplified; the model itself if none changes."""
        if not has_nested(model.symbol):
            return model

        def smaller(content: bytes) -> bytes | None:
            before = of_content(model, content)
            after = self.run(before, options)
            return content_of(after) if cost_of(after) < cost_of(before) else None

        whole = content_of(model)
        content = None if whole is None else changed_nested(whole, smaller)
        return model if content is None else model.unless_refused(of_content(model, content))


def _itself(model: Model) -> Model:
    return model


class _Run:
    """The rounds of one simplification."""

    def __init__(
        self,
        pipeline: Simplification,
        watch: Watch,
        *,
        cost: CostName = "nodes",
        max_growth: int | None = None,
        max_rounds: int = 16,
        skip: Collection[str] = (),
    ) -> None:
        if cost not in COSTS:
            raise ValueError(f"cost is one of {', '.join(COSTS)}, not {cost!r}")
        self.watch = watch
        self._pipeline = pipeline
        self._cost: CostName = cost
        self._max_growth = max_growth
        self._max_rounds = max_rounds
        self._skip = skip
        self._careful = False  # whether each step is left out whose result the format refuses

    def rounds(self, model: Model) -> Model:
        """Run the passes until none lowers the cost."""
        made = self._rounds(model)
        if model.unless_refused(made) is made:
            return made
        self._careful = True
        return self._rounds(model)

    def _rounds(self, model: Model) -> Model:
        exact = self._pipeline.exact
        passes = [
            (backend, _options(backend.declaration, exact))
            for backend in _ordered(self._pipeline)
            if backend.declaration.name not in self._skip
            and backend.declaration.is_for(model.dialect)
        ]
        start = cost_of(model)
        growth = self._max_growth
        if growth is None:
            growth = min(_LARGEST_GROWTH, start.bytes // _SHARE)
        rounds = iter(range(self._max_rounds))
        before = None
        while before is not model:
            before = model
            # Facts are found anew: what was kept of a larger graph may be less than is known of
            # this.
            with sharing(empty_errors=exact, large_sizes=exact):
                model = self._to_fixpoint(model, passes, start, growth, rounds)
        return model

    def _to_fixpoint(
        self,
        model: Model,
        passes: list[tuple[Backend, dict[str, Any]]],
        start: Cost,
        growth: int,
        rounds: Iterator[int],
    ) -> Model:
        price = cost_of(model)
        rank = rank_of(model, price, self._cost)
        # The graph on which a pass last had no effect: it would have none again.
        settled: dict[str, _core.Graph] = {}
        for _ in rounds:
            if all(settled.get(each.declaration.name) is model.symbol.graph for each, _ in passes):
                break
            for backend, options in passes:
                declaration, graph = backend.declaration, model.symbol.graph
                if settled.get(declaration.name) is graph:
                    continue
                if declaration.triggers and graph.operators().keys().isdisjoint(
                    declaration.triggers
                ):
                    settled[declaration.name] = graph
                    continue
                if "max_growth" in options:
                    limit = _limit(start, price, growth)
                    options["max_growth"] = max(limit - price.bytes, 0)
                made = self._step(backend, options, model)
                new = cost_of(made)
                grown = new.bytes > max(price.bytes, _limit(start, new, growth))
                new_rank = rank
                if not grown and made.symbol.graph is not graph:
                    new_rank = rank_of(made, new, self._cost)
                if (new_rank, new) < (rank, price) and not grown:
                    model, price, rank = made, new, new_rank
                else:
                    settled[declaration.name] = graph
        return model

    def _step(self, backend: Backend, options: dict[str, Any], model: Model) -> Model:
        step = Step(backend.declaration.name, tuple((k, str(v)) for k, v in options.items()))
        # Not by its name, which a pass of the user's may have.
        apply = model.optimize_for if self._careful else model.after_passes
        return self.watch(step, model, lambda: apply(backend, skip_infer=True, **options))


def _options(declaration: Declaration, exact: bool) -> dict[str, Any]:
    """Return the options of a pass in a pipeline; ``max_growth`` is set before each call."""
    assert declaration.joins is not None
    options = dict(declaration.joins.options)
    if not exact:
        options.update(declaration.joins.rounding)
    if any(option.name == "max_growth" for option in declaration.options or ()):
        options["max_growth"] = 0
    return options


def _limit(start: Cost, now: Cost, growth: int) -> int:
    """Return how large the weights may be: operators that are gone make room for weights."""
    return start.bytes + growth + _BYTES_OF_NODE * max(start.nodes - now.nodes, 0)


def _ordered(pipeline: Simplification) -> list[Backend]:
    """Return the passes of a pipeline, each behind the one that it names, or at the end.

    Of users' passes at one place, those of cheaper cost classes run first.
    """
    followers: dict[str, list[Backend]] = defaultdict(list)
    found = joined(pipeline.declaration.name)
    names = {backend.declaration.name for backend in found}
    for backend in found:
        joins = backend.declaration.joins
        after = joins.after if joins is not None else ""
        followers[after if after in names else ""].append(backend)

    def place(backend: Backend, sign: int = 1) -> tuple[bool, int]:
        joins = backend.declaration.joins
        expense = 0 if joins is None else get_args(CostClass).index(joins.cost)
        return not is_standard(backend.declaration.name), sign * expense

    ordered: dict[str, Backend] = {}
    # The chain of the standard passes begins with the one that follows none; those of users that
    # follow none, or one another in a circle, come last.
    for root in (*sorted(followers[""], key=place), *found):
        pending = [root]
        while pending:
            backend = pending.pop()
            if ordered.setdefault(backend.declaration.name, backend) is backend:
                # The last is the next: users' passes stand directly behind the one that they name.
                later = [
                    each
                    for each in followers[backend.declaration.name]
                    if each.declaration.name not in ordered
                ]
                later.sort(key=partial(place, sign=-1))
                pending += later
    return list(ordered.values())


def skipping(step: Step, names: list[str]) -> Step:
    """Return a step for a named pipeline that leaves more passes out."""
    options: dict[str, Any] = dict(step.options)
    before = Declaration("", options=_OPTIONS).checked(options).get("skip", ())
    options["skip"] = list(dict.fromkeys((*before, *names)))
    (made,) = steps_of((step.name, options))
    assert isinstance(made, Step)
    return replace(made, place=step.place)


for _name, _exact, _description in (
    ("simplify", False, "Runs the standard passes until the cost falls no more."),
    ("clean", True, "As simplify, with those passes only that keep every bit."),
):
    register_pipeline(Simplification(Declaration(_name, _description, (), _OPTIONS), exact=_exact))
