"""Inputs for comparisons, and what they do not show of a model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from passlib import dialects
from passlib.errors import (
    GraphError,
    InputError,
    PasslibError,
    counted,
    listed,
    printable,
    short_repr,
)
from passlib.graph.node import Entry, Node
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.passes.calls import inline_functions
from passlib.workbench.distances import Goal
from passlib.workbench.flow import Flow, flow_of, scalars_of
from passlib.workbench.goals import (
    PREDICATES,
    SELECTING,
    goals_of,
    unread_rows,
    watched_within,
)
from passlib.workbench.inputs import (
    Sizing,
    check_numeric,
    counting,
    drawn_as,
    input_specs,
    limits_of,
    sizings,
    unusual,
)
from passlib.workbench.nested import NestedGraph, nested_graphs
from passlib.workbench.numbers import Tolerance, difference
from passlib.workbench.parts import outputs_of, with_outputs
from passlib.workbench.sizes import different, sizes_in, symbols_of, unshown, with_sizes

Inputs = Mapping[str, Any]
Value = tuple[Node, int]

_MOST_NODES: Final = 20_000
_MOST_SECONDS: Final = 5.0
"""The intermediate values of larger models, or of those that run for longer, are not computed."""

_CANDIDATES: Final = 160
"""Inputs that a search tries."""
_LEAST_SEARCH: Final = 1.0
_LONGEST_SEARCH: Final = 6.0
"""Limits of the time of a search in seconds, which is otherwise that of 30 runs."""

_MOST_ROWS: Final = 8192
"""Elements of an input that reads all rows of a table."""

_FLAGS: Final = 2
"""Integers with a larger limit select rows."""

_MOST_SIZES: Final = 6
"""Open dimensions that are set to 1, one at a time."""

_MOST_KEPT: Final = 8
"""Inputs that a search adds."""

_SCALES: Final = (1e30, 1e18, 1e9, 1e6, 1e5, 1e3, 30.0, 8.0)
"""Largest magnitudes of real numbers, in order of trial."""
_MARGIN: Final = 10.0
_LEAST_MARGIN: Final = 2.0
"""Outputs must be finite for inputs larger by this factor, since rewrites overflow elsewhere; of
exponents by the smaller one."""

_EXPONENTS: Final = 30.0
"""Inputs up to this one may be exponents."""

_QUICK: Final = 0.2
"""Models that run for this many seconds are not run on larger inputs."""


_EMPTY: Final = "empty inputs"

CRASHING: Final = frozenset(
    {_EMPTY, "lengths of 0", "lengths beyond the sizes", "negative indices"}
)
"""Inputs that are not judged, on which kernels may crash."""


@short_repr
@dataclass(frozen=True)
class Sample:
    """Inputs, and sentences about what they do not show."""

    inputs: list[Inputs]
    not_covered: tuple[str, ...] | None = ()
    """None for given inputs, see `gaps_of`."""
    probes: tuple[tuple[str, Inputs], ...] = ()
    """Inputs on which right rewrites may differ, by what they are."""


def sample(
    model: Model,
    inputs: Inputs | Sequence[Inputs] | None,
    n: int,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> Sample:
    """Return the given inputs, or `n` random inputs and others that reach more of the model.

    No others are searched if inputs are given.

    Raises
    ------
    ValueError
        `n` is less than 1.
    PasslibError
        See `passlib.workbench.drawn`.
    """
    if inputs is not None:
        given = [inputs] if isinstance(inputs, Mapping) else list(inputs)
        return Sample(given, None)
    if n < 1:
        raise ValueError(f"n is {n}, but must be at least 1")
    return _Sampler(_flat(model), shapes).sample(n)


def _flat(model: Model) -> Model:
    """Return a model without calls of local functions, whose bodies have conditions, too."""
    if not dialects.find(model.dialect).has_functions(model.symbol):
        return model
    try:
        return inline_functions(model)
    except PasslibError:
        return model


def gaps_of(model: Model, given: Sequence[Inputs]) -> tuple[str, ...]:
    """Return what given inputs do not show; nothing if the model does not run on them."""
    if not given:
        return ()
    model = _flat(model)
    arrays = [{name: np.asarray(value) for name, value in each.items()} for each in given]
    start = time.perf_counter()
    try:
        outputs_of(model, arrays[0])
        specs = input_specs(model)
    except PasslibError:
        return ()
    seconds = time.perf_counter() - start
    flow = flow_of(model)
    observer = _observer_of(model, flow, arrays[0], seconds)
    if observer is None:
        gaps = [_why_not(seconds)]
    else:
        coverage = _Coverage(observer)
        runs = (observer.run_if_possible(each) for each in arrays)
        coverage.add([run for run in runs if run is not None])
        gaps = list(coverage.sentences())
    return (*gaps, *unshown(symbols_of(model, specs), arrays), *_small_integers(flow, arrays))


def _small_integers(flow: Flow, inputs: Sequence[Inputs]) -> Iterator[str]:
    """Yield a sentence about inputs that count something, and are 0 and 1 alone."""
    names = counting(flow.bounded) - {*flow.tables, *flow.depths}
    shown = [name for name in inputs[0] if name in names and inputs[0][name].dtype.kind in "iu"]
    small = [n for n in shown if all(np.all(each[n] <= 1) for each in inputs if n in each)]
    if small:
        yield f"numbers above 1 of input {listed([repr(name) for name in small])}"


def _observer_of(model: Model, flow: Flow, inputs: Inputs, seconds: float) -> _Observer | None:
    """Return an observer of a model that runs for some seconds; None if that is too slow."""
    nodes = sum(not node.is_variable for node in model.symbol.nodes())
    is_too_large = nodes > _MOST_NODES or seconds > _MOST_SECONDS
    return None if is_too_large else _Observer.of(model, flow, inputs)


def _why_not(seconds: float) -> str:
    if seconds > _MOST_SECONDS:
        return f"intermediate values: a run takes {seconds:.0f} s"
    return "intermediate values: the model is too large, or they cannot be outputs"


class _Sampler:
    """Draws the inputs of one model."""

    def __init__(self, model: Model, shapes: Mapping[str, Sequence[int | None]] | None) -> None:
        check_numeric(model)
        self._model = model
        self._specs = input_specs(model, shapes)
        self._symbols = symbols_of(model, self._specs)
        self._flow = flow_of(model)
        self._limits = limits_of(model, self._flow)
        self._base, self._sizing, self._seconds = self._first()
        self._observer = _observer_of(model, self._flow, self._base, self._seconds)
        self._refused: list[Inputs] = []

    def sample(self, n: int) -> Sample:
        start = time.perf_counter()
        runs = [self._run(self._base)]
        self._seconds = time.perf_counter() - start  # without the time to make a session
        found: list[Inputs] = [self._base]
        if self._observer is not None and runs[0] is not None:
            tables = {**self._observer.tables(), **runs[0].values}
            limits = limits_of(self._model, self._flow, tables)
            if limits != self._limits:  # rows of computed tables are known now
                redrawn = drawn_as(self._sizing.of(self._specs), limits, 0)
                run = self._run(redrawn)
                if run is not None:
                    self._limits, found, runs = limits, [redrawn], [run]
        for number in range(1, n):
            inputs, run = self._another(number)
            found.append(inputs)
            runs.append(run)
        for inputs, run in self._extremes(found) if n > 1 else ():
            found.append(inputs)
            runs.append(run)
        # More inputs have other sizes, unless the model refuses them.
        sizes = unshown(self._symbols, found) if n == 1 else ()
        if self._observer is None:
            why: tuple[str, ...] = (_why_not(self._seconds),) if self._model.inputs else ()
            return Sample(found, (*why, *sizes), self._probes())
        coverage = _Coverage(self._observer)
        kept = [run for run in runs if run is not None]
        coverage.add(kept)
        if coverage.missing():
            budget = min(max(_LEAST_SEARCH, 30 * self._seconds), _LONGEST_SEARCH)
            found += self._search(coverage, kept[0].inputs, _Clock(budget))
        gaps = (*coverage.sentences(), *sizes, *_small_integers(self._flow, found))
        return Sample(found, gaps, self._probes())

    def _probes(self) -> tuple[tuple[str, Inputs], ...]:
        """Return inputs with NaN, unusual masks, lengths and indices, and empty ones."""
        found: list[tuple[str, Inputs]] = []
        if any(value.dtype.kind == "f" for value in self._base.values()):
            changed = {name: _with_every_third(value, np.nan) for name, value in self._base.items()}
            found.append(("inputs with NaN", changed))
        found += unusual(self._base, self._limits, self._flow.tables)
        if any(None in (spec.shape or ()) for spec in self._specs.values()):
            specs = self._sizing._replace(first=0).of(self._specs)
            found.append((_EMPTY, drawn_as(specs, self._limits, 0)))
        return tuple(found)

    def _first(self) -> tuple[Inputs, Sizing, float]:
        """Return random inputs on which the model runs, their sizes, and the time of a run."""
        refusal: PasslibError | None = None
        for sizing in sizings(self._specs):
            specs = sizing.of(self._specs)
            for limits in self._limit_choices():
                inputs = drawn_as(specs, limits, 0)
                start = time.perf_counter()
                try:
                    outputs_of(self._model, inputs)
                except InputError as error:
                    refusal = refusal or error
                    break  # other values do not help
                except PasslibError as error:
                    refusal = refusal or error
                    continue
                self._limits = limits
                return inputs, sizing, time.perf_counter() - start
            labels = dialects.find(self._model.dialect).labels(self._model.symbol)
            missing = [name for name in self._model.inputs if name not in {*specs, *labels}]
            if missing:
                raise InputError(
                    f"the model does not state the shapes of {listed(missing)}; give them, as "
                    f"shapes={{{missing[0]!r}: (1, 3, 224, 224)}} or --shape "
                    f"{missing[0]}:1,3,224,224"
                ) from refusal
        raise GraphError(
            f"the model does not run on random inputs: {refusal}; give shapes (--shape, shapes=) "
            "or arrays (--inputs, inputs=) that it takes"
        ) from refusal

    def _limit_choices(self) -> Iterator[dict[str, int | None]]:
        """Yield limits of integers: likely ones, then such that choose the first row alone."""
        yield self._limits
        kinds = {name: spec.dtype for name, spec in self._specs.items()}
        if any(dtype is not None and dtype.kind in "iu" for dtype in kinds.values()):
            yield dict.fromkeys(self._limits, 2)
            yield dict.fromkeys(self._limits, 1)

    def _run(self, inputs: Inputs) -> _Run | None:
        """Return the values of a run, or None if it fails."""
        if self._observer is not None:
            return self._observer.run_if_possible(inputs)
        try:
            return _Run(inputs, {}, outputs_of(self._model, inputs))
        except PasslibError:
            return None

    def _another(self, number: int) -> tuple[Inputs, _Run | None]:
        """Draw inputs of other sizes, with special values or large ones, if the model runs.

        The values of large ones are left out: beside the largest, differences of others are small.
        """
        for sizing in self._other_sizes(number):
            specs = sizing.of(self._specs)
            if number % 2 == 0:
                large = self._large(specs, number)
                if large is not None:
                    return large, None
            for special in (True, False) if number % 2 else (False,):
                inputs = drawn_as(specs, self._limits, number, special=special)
                run = self._run(inputs)
                if run is not None and (_is_finite(run) or not special):
                    return inputs, run
        inputs = drawn_as(self._sizing.of(self._specs), self._limits, number)
        return inputs, self._run(inputs)

    def _other_sizes(self, number: int) -> Iterator[Sizing]:
        """Yield sizes for another input; the last are those of the first one."""
        if any(None in (spec.shape or ()) for spec in self._specs.values()):
            base = self._sizing
            batches = [size for size in (1, 3, 2) if size != base.first]
            first = batches[(number - 1) % len(batches)]
            for other in (base.other + (number if number % 2 else -1), base.other):
                for batch in (first, base.first):
                    if other > 0 and (batch, other) != (base.first, base.other):
                        yield base._replace(first=batch, other=other)
        yield self._sizing

    def _extremes(self, found: Sequence[Inputs]) -> Iterator[tuple[Inputs, _Run]]:
        """Yield inputs with open dimensions of 1, larger and different ones, if the model runs."""
        known: set[object] = {_shapes(each) for each in found}
        base = self._sizing
        larger = base._replace(other=base.other + base.other // 2 + 1)
        choices = [[base._replace(first=1, other=1).of(self._specs)]]
        if self._seconds <= _QUICK:
            choices.append([larger.of(self._specs)])
        sizes = sizes_in(self._symbols, self._base)
        choices.append([self._sized(different(sizes, step)) for step in (1, base.other)])
        for choice in choices:
            for specs in choice:
                shapes = tuple((name, spec.shape or ()) for name, spec in specs.items())
                if shapes in known:
                    continue
                inputs = drawn_as(specs, self._limits, len(known))
                run = self._run(inputs)
                if run is not None and _is_finite(run):
                    known.add(shapes)
                    yield inputs, run
                    break

    def _sized(self, sizes: Mapping[str, int]) -> dict[str, TypeSpec]:
        return with_sizes(self._sizing.of(self._specs), self._symbols, sizes)

    def _large(self, specs: Mapping[str, TypeSpec], number: int) -> Inputs | None:
        """Return inputs up to the edge of their type, with outputs that are finite."""
        kinds = [spec.dtype for spec in specs.values() if spec.dtype is not None]
        reals = [dtype for dtype in kinds if dtype.kind == "f"]
        if not reals:
            return None
        edge = min(float(np.finfo(dtype).max) for dtype in reals)
        for scale in _SCALES:
            if scale * _MARGIN > edge:
                continue
            inputs = drawn_as(specs, self._limits, number, scale)
            margin = _MARGIN if scale > _EXPONENTS else _LEAST_MARGIN
            larger = {name: _scaled(value, margin) for name, value in inputs.items()}
            run = self._run(inputs)
            if run is None:
                return None
            beyond = self._run(larger) if _is_finite(run) else None
            if beyond is not None and _is_finite(beyond):
                return inputs
        return None

    def _search(self, coverage: _Coverage, base: Inputs, clock: _Clock) -> list[Inputs]:
        """Return inputs that reach what no other input did."""
        found: list[Inputs] = []
        for tried, inputs in enumerate(self._candidates(coverage, base)):
            if not coverage.missing() or clock.is_over():
                break
            if tried >= _CANDIDATES or len(found) >= _MOST_KEPT:
                break
            run = self._run(inputs)
            if run is None:
                self._refused.append(inputs)
            if run is not None and _is_sensible(run, inputs) and coverage.add([run]):
                found.append(inputs)
        return found

    def _all_rows(self, base: Inputs) -> Iterator[Inputs]:
        """Yield inputs that read each row of a table, of larger sizes where these are open."""
        for name, limit in self._limits.items():
            if limit is None or limit <= _FLAGS or base[name].dtype.kind not in "iu":
                continue
            size = max(base[name].size, 1)
            for sizing in (
                self._sizing._replace(other=limit),
                self._sizing._replace(first=-(-limit * self._sizing.first // size)),
            ):
                specs = sizing.of(self._specs)
                if limit <= np.prod([n or 0 for n in specs[name].shape or ()]) <= _MOST_ROWS:
                    drawn = drawn_as(specs, self._limits, 0)
                    yield {**drawn, name: _rows_from(0, drawn[name], limit)}
            for start in (0, limit - size, (limit - size) // 2):
                yield {**base, name: _rows_from(max(start, 0), base[name], limit)}

    def _beyond_depths(self, base: Inputs) -> Iterator[Inputs]:
        """Yield indices of OneHot that are negative or too large, which it takes, too."""
        for name in self._flow.depths:
            limit = self._limits.get(name)
            if limit is not None and base[name].dtype.kind in "iu":
                shifted = (np.arange(base[name].size) % (3 * limit)) - limit
                yield {**base, name: shifted.reshape(base[name].shape).astype(base[name].dtype)}
                yield {**base, name: np.full_like(base[name], limit)}

    def _of_other_sizes(self, base: Inputs) -> Iterator[Inputs]:
        """Yield the refused integers and booleans with inputs of other sizes.

        A branch of If may need other sizes than the rest of the model.
        """
        known: set[str] = set()
        for inputs in list(self._refused):
            changed = {
                name: value
                for name, value in inputs.items()
                if value.dtype.kind in "biu" and not np.array_equal(value, base[name])
            }
            for sizing in sizings(self._specs) if changed else ():
                drawn = drawn_as(sizing.of(self._specs), self._limits, 0)
                drawn |= {n: v for n, v in changed.items() if v.shape == drawn[n].shape}
                key = repr(
                    [(name, value.shape, value.tobytes()[:64]) for name, value in drawn.items()]
                )
                if key not in known:
                    known.add(key)
                    yield drawn

    def _candidates(self, coverage: _Coverage, base: Inputs) -> Iterator[Inputs]:
        """Yield inputs: of other values, of other sizes, then ever closer to a missing goal."""
        generator = np.random.default_rng(1)
        observers = [] if self._observer is None else list(self._observer.all())
        models = [self._model, *(each.model for each in observers[1:])]
        pool = [number for each in models for number in scalars_of(each)]
        if coverage.unread:
            yield from self._all_rows(base)
        yield from self._beyond_depths(base)
        yield from _changed(base, self._limits, pool)
        yield from self._of_other_sizes(base)
        if any(node.op in PREDICATES for each in models for node in each.symbol.nodes()):
            for special in (np.nan, np.inf, -np.inf):
                yield {name: _with_every_third(value, special) for name, value in base.items()}
        for symbol in list(sizes_in(self._symbols, base))[:_MOST_SIZES]:
            yield drawn_as(self._sized({symbol: 1}), self._limits, 1)
        for number in (3, 5, 9):
            for sizing in (
                self._sizing._replace(first=number),
                self._sizing._replace(other=self._sizing.other + number),
                self._sizing._replace(first=1, other=number),
            ):
                yield drawn_as(sizing.of(self._specs), self._limits, number)
        while True:
            nearest = coverage.nearest()
            if nearest is None:
                return
            step = float(10 ** generator.uniform(-2, 2))
            yield {name: _moved(generator, value, step) for name, value in nearest.items()}


class _Clock:
    """Measures a time of this process, so that others hardly change what is found."""

    def __init__(self, seconds: float) -> None:
        self._wall = time.perf_counter() + seconds
        self._own = time.process_time() + seconds

    def is_over(self) -> bool:
        """Whether the time has passed, and the process has worked for as long."""
        return time.perf_counter() > self._wall and time.process_time() > self._own


def _shapes(inputs: Inputs) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, value.shape) for name, value in inputs.items())


def _is_finite(run: _Run) -> bool:
    return all(
        bool(np.all(np.isfinite(np.asarray(value, np.float64))))
        for value in run.outputs
        if getattr(getattr(value, "dtype", None), "kind", "") in "fV"
    )


def _is_sensible(run: _Run, inputs: Inputs) -> bool:
    """Whether finite inputs give finite outputs."""
    finite = all(
        bool(np.all(np.isfinite(value))) for value in inputs.values() if value.dtype.kind == "f"
    )
    return _is_finite(run) or not finite


def _with_every_third(value: Any, special: float) -> Any:
    if value.dtype.kind != "f":
        return value
    places = np.arange(value.size).reshape(value.shape) % 3 == 1
    return np.where(places if value.size > 1 else True, special, value).astype(value.dtype)


def _scaled(value: Any, factor: float) -> Any:
    with np.errstate(all="ignore"):
        return (value * factor).astype(value.dtype) if value.dtype.kind == "f" else value


def _moved(generator: np.random.Generator, value: Any, step: float) -> Any:
    if value.dtype.kind != "f" or not value.size:
        return value
    noise = generator.standard_normal(value.shape) * step
    if generator.integers(2):  # all together, which moves sums
        noise = np.full(value.shape, generator.standard_normal() * step)
    with np.errstate(all="ignore"):
        return (value + noise).astype(value.dtype)


def _changed(
    base: Inputs, limits: Mapping[str, int | None], pool: Sequence[float]
) -> Iterator[Inputs]:
    """Yield inputs changed in one integer or boolean input at a time, then in all reals."""

    def reals(change: Any, only: str | None = None) -> Inputs:
        with np.errstate(all="ignore"):
            return {
                name: np.asarray(change(value)).astype(value.dtype)
                if value.dtype.kind in "fV" and only in (None, name)
                else value
                for name, value in base.items()
            }

    for name, value in base.items():
        if value.dtype.kind == "b":
            for flag in (True, False):
                yield {**base, name: np.full_like(value, flag)}
        elif value.dtype.kind in "iu":
            yield from ({**base, name: each} for each in _integers(value, limits[name], pool))
    names = [name for name, value in base.items() if value.dtype.kind in "fV"]
    if names:
        changes = [
            lambda x: -np.abs(x),
            np.abs,
            np.rint,
            lambda x: x * 10,
            lambda x: x * 0.01,
            lambda x: x * 1e3,
            np.zeros_like,
            lambda x: x * 1e5,
            lambda x: np.abs(x) * -1e3,
            lambda x: np.rint(np.asarray(x) * 2) / 2,
        ]
        yield from map(reals, changes)
        if len(names) > 1:
            for name in names[:4]:
                for change in changes[:6]:
                    yield reals(change, name)
        for number in pool[:12]:
            yield reals(lambda x, number=number: np.full_like(x, number))
            yield reals(lambda x, number=number: np.asarray(x) + number * 1.5)
            for factor in (1.005, 0.995):
                beside = number * factor or factor - 1
                yield reals(lambda x, beside=beside: np.full_like(x, beside))


def _rows_from(start: int, value: Any, limit: int) -> Any:
    rows = (np.arange(value.size) + start) % limit
    return rows.reshape(value.shape).astype(value.dtype)


def _integers(value: Any, limit: int | None, pool: Sequence[float]) -> Iterator[Any]:
    info = np.iinfo(value.dtype)
    if limit is not None and limit > _FLAGS:
        return
    beside = (number + step for number in pool[:12] for step in (1, -1))
    for number in (0, 1, 2, 5, -1, *pool[:12], *beside, *([] if limit else [info.min, info.max])):
        if number == int(number) and info.min <= number <= info.max:
            yield np.full_like(value, int(number))


Values = Mapping[Value, Any]


@dataclass(frozen=True)
class _Run:
    """The values of a run that conditions look at, and the outputs."""

    inputs: Inputs
    values: Values
    outputs: Sequence[Any]
    nested: Sequence[Values] = ()
    """Values of each execution of a nested graph."""
    executed: frozenset[int] = frozenset()
    """Which observers of nested graphs these have."""

    @property
    def seen(self) -> tuple[Values, ...]:
        """The values of the main graph, and of each execution of a nested graph."""
        return (self.values, *self.nested)


_MOST_NESTED: Final = 64
"""Nested graphs of which values are looked at."""


class _Observer:
    """Computes intermediate values together with the outputs, in one session."""

    def __init__(self, model: Model, flow: Flow, part: Model, entries: Sequence[Entry]) -> None:
        self.model = model
        self.flow = flow
        self.nested: list[tuple[NestedGraph, _Observer]] = []
        self.place = ""
        self._part = part
        self._entries = entries
        self._known: dict[Value, Any] = {}
        self._variables = {node.name: node for node in model.symbol.nodes() if node.is_variable}
        for weights in (model.args, model.aux):
            for name in weights:
                if name in self._variables:
                    self._known[self._variables[name], 0] = weights[name]

    @classmethod
    def of(cls, model: Model, flow: Flow, inputs: Inputs) -> _Observer | None:
        """Return an observer of what goals and tables read; None if the model refuses."""
        wanted: dict[Value, Entry] = {}
        for goal in goals_of(model, flow):
            wanted.update({(each.node, each.index): each for each in goal.reads})
        for name in model.inputs:
            for entry, _ in flow.tables.get(name, ()):
                wanted[entry.node, entry.index] = entry
        for node in model.symbol.nodes():
            if node.op in SELECTING or node.op == "OneHot":
                wanted.update({(e.node, e.index): e for e in node.inputs[:2]})
            elif node.subgraphs:
                wanted.update({(e.node, e.index): e for e in node.inputs})
        entries = [entry for entry in wanted.values() if not entry.node.is_variable]
        outputs = list(model.symbol.entries)
        for chosen in (entries, []):
            part = with_outputs(model, [*outputs, *chosen])
            try:
                outputs_of(part, inputs)
            except PasslibError:
                continue
            made = cls(model, flow, part, chosen)
            made._look_inside(inputs)
            return made
        return None

    def _look_inside(self, inputs: Inputs) -> None:
        """Make observers of the nested graphs, whose inputs have the types of this run."""
        values = self.run(inputs).values
        for each in nested_graphs(self.model, values)[:_MOST_NESTED]:
            fed = next(each.executions(values), None) or each.first_inputs(values)
            varying = {n for n, entry in each.captured.items() if self.flow.depends(entry)}
            if any(map(self.flow.depends, each.node.inputs)):
                varying |= set(each.parameters)
            flow = flow_of(each.model, varying)
            inner = _Observer.of(each.model, flow, fed)
            if inner is None:
                continue
            inner.place = f" in {each}"
            self.nested.append((each, inner))
            for name, entry in each.captured.items():
                for reached in self.flow.values.get((entry.node, entry.index), ()):
                    self.flow.tables.setdefault(reached, []).extend(flow.tables.get(name, ()))

    def all(self) -> Iterator[_Observer]:
        """Yield this observer and those of the nested graphs, at all depths."""
        pending = [self]
        while pending:
            each = pending.pop()
            yield each
            pending += [inner for _, inner in each.nested]

    def tables(self) -> dict[Value, Any]:
        """Return the constants of the nested graphs, which may be tables."""
        return {value: array for each in self.all() for value, array in each._known.items()}

    def run(self, inputs: Inputs) -> _Run:
        """Compute the values on inputs; raises a PasslibError if the model does not run."""
        computed = outputs_of(self._part, inputs)
        count = len(computed) - len(self._entries)
        values = dict(self._known)
        values.update(
            {(self._variables[n], 0): v for n, v in inputs.items() if n in self._variables}
        )
        values.update(
            {(e.node, e.index): v for e, v in zip(self._entries, computed[count:], strict=True)}
        )
        nested: list[Values] = []
        executed: set[int] = set()
        for graph, inner in self.nested:
            for fed in graph.executions(values):
                run = inner.run_if_possible(fed)
                if run is not None:
                    nested += run.seen
                    executed |= {id(inner), *run.executed}
        return _Run(inputs, values, computed[:count], nested, frozenset(executed))

    def run_if_possible(self, inputs: Inputs) -> _Run | None:
        """Compute the values on inputs, or return None if the model does not run."""
        try:
            return self.run(inputs)
        except PasslibError:
            return None

    def unseen(self) -> Iterator[str]:
        """Yield sentences about conditions in nested graphs that have no observer."""
        for node in self.model.symbol.nodes():
            seen = sum(graph.node is node for graph, _ in self.nested)
            operators = watched_within(node) if seen < len(node.subgraphs) else []
            if operators:
                outer = f"{printable(node.op)} {printable(node.name)!r}{self.place}"
                yield f"values of {', '.join(operators)} inside {outer}"


class _Coverage:
    """What a number of runs did not show."""

    def __init__(self, observer: _Observer) -> None:
        self._model = observer.model
        self._flow = observer.flow
        self._observer = observer
        self._observers = list(observer.all())
        self._goals: list[Goal] = []
        self._homes: dict[int, _Observer] = {}
        for each in self._observers:
            for goal in goals_of(each.model, each.flow):
                goal.subject += each.place
                self._goals.append(goal)
                self._homes[id(goal)] = each
        self._nearest: dict[int, tuple[float, Inputs]] = {}
        self._runs: list[_Run] = []
        self._still: list[str] = []
        self.unread = 0

    def add(self, runs: Sequence[_Run]) -> bool:
        """Add runs; return whether they showed anything new."""
        before = len(self._goals) + len(self._still) + self.unread
        started = bool(self._runs)
        kept = []
        for goal in self._goals:
            distances = [(min(map(goal.of, run.seen)), run.inputs) for run in runs]
            best = min(distances, key=lambda each: each[0], default=(np.inf, {}))
            if best[0] <= 0:
                self._nearest.pop(id(goal), None)
                continue
            if best[0] < self._nearest.get(id(goal), (np.inf, None))[0]:
                self._nearest[id(goal)] = best
            kept.append(goal)
        self._goals = kept
        self._runs = [*self._runs, *runs]
        self._still = list(self._constant_outputs())
        self.unread = sum(missing for _, missing, _ in self._rows())
        is_new = len(self._goals) + len(self._still) + self.unread < before
        if started and not is_new:
            self._runs = self._runs[: len(self._runs) - len(runs)]
        return is_new

    def _rows(self) -> Iterator[tuple[str, int, int]]:
        runs = [values for run in self._runs for values in run.seen]
        for each in self._observers:
            for subject, missing, rows in unread_rows(each.model, each.flow, runs):
                yield f"{subject}{each.place}", missing, rows

    def missing(self) -> bool:
        """Whether anything was not shown."""
        return bool(self._goals or self._still or self.unread)

    def nearest(self) -> Inputs | None:
        """Return the inputs that came nearest to a goal; the goals take turns."""
        for goal in list(self._goals):
            if id(goal) in self._nearest:
                self._goals.remove(goal)
                self._goals.append(goal)
                return self._nearest[id(goal)][1]
        return self._runs[0].inputs if self._still and self._runs else None

    def _constant_outputs(self) -> Iterator[str]:
        """Yield sentences about outputs that depend on inputs, but not on those of the runs."""
        for place, (entry, name) in enumerate(
            zip(self._model.symbol.entries, self._model.outputs, strict=True)
        ):
            if not self._flow.depends(entry):
                continue
            values = [run.outputs[place] for run in self._runs]
            arrays = [np.asarray(value) for value in values if hasattr(value, "dtype")]
            state = _constant(arrays) if len(arrays) == len(values) else ""
            if state:
                yield f"output {printable(name)!r} {state}"

    def sentences(self) -> Iterator[str]:
        """Yield what was not shown; goals of one kind in one sentence."""
        yield from self._still
        groups: dict[str, list[str]] = {}
        executed = {id(self._observer)}.union(*(run.executed for run in self._runs))
        # Of a branch that is not taken, it is enough to say that.
        shown = [goal for goal in self._goals if id(self._homes[id(goal)]) in executed]
        for goal in sorted(shown, key=lambda each: each.subject):
            groups.setdefault(goal.state, []).append(goal.subject)
        for state, subjects in groups.items():
            more = f" and {len(subjects) - 3} more" if len(subjects) > 3 else ""
            yield f"{state} {', '.join(subjects[:3])}{more}"
        for subject, missing, rows in self._rows():
            yield f"{missing} of {counted(rows, 'row')} at {subject}"
        for each in self._observers:
            if id(each) in executed:
                yield from each.unseen()


def _constant(arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Return how values are constant, or nothing."""
    if not any(array.size for array in arrays):
        return "is empty for all inputs"
    full = [array.ravel() for array in arrays if array.size and array.dtype.kind in "biufV"]
    if not full:
        return ""
    reals = [array.astype(np.float64) for array in full]
    first = reals[0][0]
    if all(bool(np.all(np.isnan(array))) for array in reals):
        return "is NaN for all inputs"
    if all(bool(np.all(array == first)) for array in reals) and sum(a.size for a in reals) > 1:
        return f"is {first:g} for all inputs"
    if len(arrays) > 1 and all(_like(arrays[0], other) for other in arrays[1:]):
        return "is the same for all inputs"
    return ""


def _like(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> bool:
    """Whether the common part of two arrays is equal within the tolerance."""
    if one.ndim != two.ndim:
        return False
    common = tuple(slice(min(sizes)) for sizes in zip(one.shape, two.shape, strict=True))
    a, b = one[common], two[common]
    return bool(a.size) and difference("", a, b, Tolerance()).equal
