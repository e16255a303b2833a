"""`passlib.simplify`: the pipelines ``simplify`` and ``clean``, a loop over what passes declare."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import passlib._core as _core
from passlib.dialects import find
from passlib.dialects.onnx.lowering.types import check_sizes
from passlib.dialects.onnx.reading import document_of
from passlib.dialects.onnx.soundness.acceptance import loses_captured_casts
from passlib.dialects.onnx.writing.assembly import assemble
from passlib.errors import PassError, PasslibError, UnsupportedError, did_you_mean
from passlib.library.backends import (
    STANDARD_NAMES,
    NamedPipeline,
    is_standard,
    joined,
    register_pipeline,
)
from passlib.library.call import Backend
from passlib.library.declared import Declaration, Option, OptionError
from passlib.library.pipeline import Step, shape_of_text, steps_of, text_of_shapes
from passlib.library.python import SparedCopy
from passlib.model import Model
from passlib.model.edits import changed_nested, content_of, of_content
from passlib.model.functions import with_functions
from passlib.model.loading import AnyModel, as_model
from passlib.passes.cost import COSTS, Cost, CostName, cost_of, has_nested, rank_of

Watch = Callable[[Step, Model, Callable[[], Model]], Model]
"""Runs a function as one step on a model."""

TARGETS: Final = ("onnx", "onnxruntime")

_OPTIONS: Final = (
    Option("fixed", "text", (), "shapes of inputs, such as x:1,3,224,224", is_list=True),
    Option("skip", "text", (), "passes to skip", is_list=True),
    Option("cost", "text", "nodes", "measure that each kept step must lower", COSTS),
    Option(
        "max_growth", "integer", None,
        "maximum growth of the weights in bytes (default: 1 %, at most 1 MB)", low=0,
    ),
    Option("max_rounds", "integer", 16, "maximum number of rounds", low=1),
    Option("target", "text", "onnx", "runtime whose own operators are made", TARGETS),
)  # fmt: skip

_NUMBERS = ("max_growth", "max_rounds")

_kept: ContextVar[dict[str, Any] | None] = ContextVar("kept", default=None)


def simplify(
    model: AnyModel,
    *,
    exact: bool = False,
    cost: CostName = "nodes",
    max_growth: int | None = None,
    max_rounds: int = 16,
    skip: Collection[str] = (),
    fixed: Mapping[str, Sequence[int | None]] | None = None,
    target: Literal["onnx", "onnxruntime"] = "onnx",
) -> Model:
    """Return an equivalent model with fewer operators.

    The passes of the pipeline run in rounds; the result of a pass is kept only if it lowers the
    cost. Open dimensions stay open, and outputs keep their names.

    Parameters
    ----------
    model : Model, path-like, bytes or onnx.ModelProto
        Loaded with `passlib.load` unless it is a `Model`.
    exact : bool
        Run only bit-exact passes. Otherwise operators are also folded into the weights of linear
        layers, which changes results by rounding.
    cost : {"nodes", "bytes", "flops", "traffic"}
        The number of operators, including nested graphs; the size of the weights; or an estimate
        for one run, without nested graphs and with open dimensions counted as 1: arithmetic
        operations, or bytes that operators read and write. Ties are decided by the number of
        operators, then by the size of the weights.
    max_growth : int, optional
        Maximum growth of the weights in bytes (default: 1 %, at most 1 MB). Each removed operator
        allows 64 bytes more.
    max_rounds : int
        Maximum number of rounds.
    skip : collection of str
        Passes to skip.
    fixed : mapping of str to shape, optional
        Shapes of the inputs of an ONNX model, which the result states; ``None`` leaves a dimension
        open. Values computed from them become constants.
    target : {"onnx", "onnxruntime"}
        Make ONNX's operators only, or fused operators of com.microsoft, too, which only ONNX
        Runtime has. With ``exact`` there are none.

    Raises
    ------
    PasslibError
        The model cannot be loaded, a pass failed, a number is out of range, ``fixed`` names an
        unknown input or contradicts the model's shape, or the model is not ONNX.
    ValueError
        ``cost`` or ``target`` is invalid.

    Examples
    --------
    >>> import passlib
    >>> passlib.simplify("model.onnx").save("smaller.onnx")  # doctest: +SKIP
    """
    found = as_model(model)
    return found.simplify(
        exact=exact,
        cost=cost,
        max_growth=max_growth,
        max_rounds=max_rounds,
        skip=skip,
        fixed=fixed,
        target=target,
    )


@contextmanager
def sharing(**given: Any) -> Iterator[None]:
    """Share assumptions about open dimensions between the passes inside."""
    token = _kept.set(given)
    try:
        yield
    finally:
        _kept.reset(token)


def kept() -> dict[str, Any] | None:
    """Return the shared assumptions by name; None outside of `sharing`."""
    return _kept.get()


class Simplification(NamedPipeline):
    """A pipeline that runs the passes that join it until the cost stops falling."""

    def check(self, options: Mapping[str, Any]) -> None:
        """Check the numbers, and that ``skip`` names standard passes or those of the pipeline."""
        numbers = {name: options[name] for name in _NUMBERS if name in options}
        self.declaration.checked(numbers)
        known = {backend.declaration.name for backend in joined(self.declaration.name)}
        for name in options.get("skip", ()):
            if name not in known and not is_standard(name):
                near = did_you_mean(name, [*known, *STANDARD_NAMES], 1)
                raise OptionError(
                    f"option 'skip': there is no standard pass {name!r}{near}", "skip"
                )

    def run(self, model: Model, options: Mapping[str, Any], watch: Watch | None = None) -> Model:
        """Return the simplified model.

        The steps ``simplifyNested`` and ``simplifyFunctions`` simplify nested graphs, and the
        bodies of local functions, as separate models.

        Parameters
        ----------
        options : mapping
            The arguments of `simplify`.
        watch : callable, optional
            Runs each step.

        Raises
        ------
        OptionError
            An item of ``fixed`` or ``skip``, or a number, is invalid.
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
            model = _fixed(model, fixed)
        run = _Run(self, watch or _unwatched, **given)
        made = self._graphs(run, model, given)
        while find(made.dialect).has_functions(made.symbol):
            inside = run.watch(Step("simplifyFunctions"), made, partial(self._bodies, made, given))
            if inside is made:
                break
            made = self._graphs(run, inside, given)
        return made

    def _graphs(self, run: _Run, model: Model, given: Mapping[str, Any]) -> Model:
        """Return the model with a simplified main graph and simplified nested graphs."""
        made = run.rounds(model)
        if not has_nested(made.symbol):
            return made
        inside = run.watch(Step("simplifyNested"), made, lambda: self._nested(made, given))
        while cost_of(inside) < cost_of(made):
            made = run.rounds(inside)
            inside = self._nested(made, given)
            if inside is not made:
                inside = run.watch(Step("simplifyNested"), made, partial(_itself, inside))
        return made

    def _nested(self, model: Model, options: Mapping[str, Any]) -> Model:
        """Return the model with simplified nested graphs; the same object if nothing changed."""
        if not has_nested(model.symbol):
            return model
        whole = content_of(model)
        smaller = partial(self._smaller, model, options)
        content = None if whole is None else changed_nested(whole, smaller)
        return model if content is None else model.unless_refused(of_content(model, content))

    def _bodies(self, model: Model, options: Mapping[str, Any]) -> Model:
        """Return the model with simplified functions; the same object if nothing changed."""

        def smaller(content: bytes) -> bytes | None:
            try:
                return self._smaller(model, options, content)
            except PassError:
                raise
            except PasslibError:  # a body that is no model stays as it is
                return None

        made = with_functions(model, smaller, falls=True)
        if made is model or not _loses_casts(made) or _loses_casts(model):
            return made
        return model

    def _smaller(self, model: Model, options: Mapping[str, Any], content: bytes) -> bytes | None:
        """Return a part of a model, which is a model itself, simplified; None if it is the same."""
        before = of_content(model, content)
        after = self._graphs(_Run(self, _unwatched, **options), before, options)
        return content_of(after) if cost_of(after) < cost_of(before) else None


def _fixed(model: Model, shapes: Mapping[str, Sequence[int | None]]) -> Model:
    """Return an ONNX model that states sizes where it left them open."""
    if model.dialect != "onnx":
        raise UnsupportedError(
            f"sizes of inputs are fixed in ONNX models only, and this one is of {model.dialect}; "
            f"Model.to_onnx(shapes=) writes it as ONNX with these sizes"
        )
    stated = model.input_types
    for name, shape in shapes.items():
        if name in stated:
            check_sizes(name, stated[name], shape)
    return model.with_shapes(shapes)


def _loses_casts(model: Model) -> bool:
    data = model.data(whole=False)
    written = assemble(
        data.graph, data.attributes, document_of(data.attributes), dict(data.args), renew=False
    )
    return loses_captured_casts(written.outline)


def _unwatched(_step: Step, _model: Model, body: Callable[[], Model]) -> Model:
    return body()


def _itself(model: Model) -> Model:
    return model


class _Priced(NamedTuple):
    """A model with its cost and the measure that the user chose."""

    model: Model
    cost: Cost
    rank: int

    @property
    def graph(self) -> _core.Graph:
        return self.model.symbol.graph


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
        target: str = "onnx",
    ) -> None:
        for name, value, known in (("cost", cost, COSTS), ("target", target, TARGETS)):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, not {value!r}")
        self.watch = watch
        self._pipeline = pipeline
        self._cost: CostName = cost
        self._max_growth = max_growth
        self._max_rounds = max_rounds
        self._skip = skip
        self._target = target
        self._spared = SparedCopy()
        self._careful = False  # drop each step whose result cannot be saved

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
            (backend, _options(backend.declaration, exact, self._target))
            for backend in _ordered(self._pipeline)
            if backend.declaration.name not in self._skip
            and backend.declaration.is_for(model.dialect)
        ]
        start = cost_of(model)
        priced = _Priced(model, start, rank_of(model, start, self._cost))
        made = priced

        def has_trigger(place: int) -> bool:
            triggers = passes[place][0].declaration.triggers
            return not triggers or not priced.graph.operators().keys().isdisjoint(triggers)

        def run(place: int, room: int) -> Cost | None:
            nonlocal made
            made = priced  # a refused result is no longer in memory while the pass runs
            backend, options = passes[place]
            if "max_growth" in options:
                options["max_growth"] = room
            after = self._step(backend, options, priced.model)
            if after is priced.model:
                return None
            made = _Priced(after, cost_of(after), priced.rank)
            return made.cost

        def is_cheaper() -> bool:
            nonlocal made
            if made.graph is not priced.graph:
                made = made._replace(rank=rank_of(made.model, made.cost, self._cost))
            return (made.rank, made.cost) < (priced.rank, priced.cost)

        def keep() -> bool:
            nonlocal priced
            is_other = made.graph is not priced.graph
            priced = made
            return is_other

        with sharing(empty_errors=exact, large_sizes=exact), closing(self._spared):
            _core.run_rounds(
                len(passes),
                start,
                min(self._max_rounds, sys.maxsize),
                None if self._max_growth is None else min(self._max_growth, sys.maxsize),
                has_trigger,
                run,
                is_cheaper,
                keep,
            )
        return priced.model

    def _step(self, backend: Backend, options: dict[str, Any], model: Model) -> Model:
        step = Step(backend.declaration.name, tuple((k, str(v)) for k, v in options.items()))
        # Not by name, which a pass of the user may shadow.
        apply = model.optimize_for if self._careful else model.after_passes

        def body() -> Model:
            with self._spared.used():
                return apply(backend, skip_infer=True, **options)

        return self.watch(step, model, body)


def _options(declaration: Declaration, exact: bool, target: str) -> dict[str, Any]:
    """Return the options of a pass in a pipeline; ``max_growth`` is updated before each call."""
    assert declaration.joins is not None
    options = dict(declaration.joins.options)
    if not exact:
        options.update(declaration.joins.rounding)
    names = {option.name for option in declaration.options or ()}
    if "max_growth" in names:
        options["max_growth"] = 0
    if "target" in names and target != "onnx":
        options["target"] = target
    return options


def _ordered(pipeline: Simplification) -> list[Backend]:
    """Return the passes of a pipeline, each after the pass that it names, or at the end."""
    found = joined(pipeline.declaration.name)
    passes = []
    for backend in found:
        name, joins = backend.declaration.name, backend.declaration.joins
        assert joins is not None
        passes.append((name, joins.after, is_standard(name), joins.cost))
    return [found[place] for place in _core.order_passes(passes)]


def skipping(step: Step, names: list[str]) -> Step:
    """Return the step of a named pipeline with more passes to skip."""
    return _extended(step, "skip", names)


def fixing(step: Step, shapes: Mapping[str, Sequence[int | None]]) -> Step:
    """Return the step of a named pipeline with more shapes of inputs."""
    return _extended(step, "fixed", text_of_shapes(shapes))


def targeting(step: Step, name: str) -> Step:
    """Return the step of a named pipeline for a target."""
    (made,) = steps_of((step.name, {**dict(step.options), "target": name}))
    assert isinstance(made, Step)
    return replace(made, place=step.place)


def _extended(step: Step, name: str, items: list[str]) -> Step:
    options: dict[str, Any] = dict(step.options)
    before = Declaration("", options=_OPTIONS).checked(options).get(name, ())
    options[name] = list(dict.fromkeys((*before, *items)))
    (made,) = steps_of((step.name, options))
    assert isinstance(made, Step)
    return replace(made, place=step.place)


for _name, _exact, _description in (
    ("simplify", False, "Run the standard passes until the cost stops falling."),
    ("clean", True, "Like simplify, but run only bit-exact passes."),
):
    register_pipeline(Simplification(Declaration(_name, _description, (), _OPTIONS), exact=_exact))
