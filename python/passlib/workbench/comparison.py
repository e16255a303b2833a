"""Compares the outputs of two models."""

from __future__ import annotations

import copy
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final

import numpy as np

from passlib import dialects
from passlib.errors import (
    InputError,
    PasslibError,
    PassResultError,
    listed,
    no_input,
    printable,
    short_repr,
)
from passlib.graph.tables import Table
from passlib.library.pipeline import Step
from passlib.lowering import TypeSpec
from passlib.model import Model
from passlib.model.inputs import lowered_for
from passlib.model.loading import AnyModel, as_model
from passlib.pages import content_of, document
from passlib.passes import Instrument, StepResult
from passlib.workbench.flow import flow_of
from passlib.workbench.numbers import Difference, Tolerance, difference
from passlib.workbench.parts import outputs_of
from passlib.workbench.per_value import (
    NodeDifference,
    ValueDifference,
    drawn_side,
    first_difference,
    value_differences,
    with_seconds,
)
from passlib.workbench.randomness import random_nodes, seeded
from passlib.workbench.rounding import Rounding, half_unit
from passlib.workbench.sampling import CRASHING, Sample, gaps_of, sample
from passlib.workbench.surviving import survived

Inputs = Mapping[str, Any]

DRAWN: Final = 3
"""Default number of random inputs of all comparisons."""

_LONGEST_PROBE: Final = 20
"""Seconds after which a process that runs a model on empty or unusual inputs ends."""


@short_repr
@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    outputs : tuple of Difference
        The largest difference of each output, with the names of the first model.
    inputs : tuple of mapping of str to array
        The inputs of both models.
    node : NodeDifference or None
        The first node whose value differs, on request.
    values : tuple of ValueDifference
        All values that both models compute, on request.
    not_covered : tuple of str
        What the inputs do not show of the first model, one sentence each.
    paired : tuple of str
        The inputs and outputs that were paired although their names differ, such as
        ``"input x with data"``.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> found = pl.workbench.compare(pl.Model(pl.sym.exp(x)), pl.Model(pl.sym.exp(x) + 1))
    >>> found.equal, found.outputs[0].what
    (False, 'values')
    """

    outputs: tuple[Difference, ...]
    inputs: tuple[Inputs, ...]
    node: NodeDifference | None = None
    not_covered: tuple[str, ...] = ()
    values: tuple[ValueDifference, ...] = ()
    paired: tuple[str, ...] = ()

    def to_html(self, b: Model) -> str:
        """Return a page that draws the second model with the errors and times of its nodes.

        ``b``: the second of the models that were compared with ``per_node``.
        """
        columns = ["value", "operator", "largest", "of tolerance", "mean", "us", "us before"]
        rows = [
            [each.name, each.op, each.difference.absolute, each.difference.share, each.mean,
             *(None if s is None else round(1e6 * s, 1) for s in reversed(each.seconds))]
            for each in self.values
        ]  # fmt: skip
        facts = [(each.name, str(each).removeprefix(f"{each.name}: ")) for each in self.outputs]
        drawn = drawn_side(b, self.values)
        table = {"title": "Values", "columns": columns, "rows": rows}
        return document("comparison", content_of(drawn, None, facts, [table]))

    @property
    def equal(self) -> bool:
        """Whether all outputs agree within the tolerance."""
        return all(output.equal for output in self.outputs)

    @property
    def differences(self) -> str:
        """The differing outputs and their differences, in one line; empty if all agree."""
        wrong = [f"output {printable(o.name)!r}: {o.what}" for o in self.outputs if not o.equal]
        return "; ".join(wrong[:3])

    def __str__(self) -> str:
        lines = map(str, self.outputs)
        node = [str(self.node)] if self.node is not None else []
        return "\n".join([*lines, *node, *self._notes()])

    def _notes(self) -> list[str]:
        paired = [f"paired by position: {printable(each)}" for each in self.paired]
        return [*paired, *(f"not covered: {each}" for each in self.not_covered)]

    def _repr_html_(self) -> str:
        rows = [
            (each.name, each.what or "equal", f"{each.absolute:.3g}", f"{each.share:.3g}")
            for each in self.outputs
        ]
        table = Table(("output", "result", "absolute", "of tolerance"), rows)._repr_html_()
        node = [str(self.node)] if self.node is not None else []
        notes = [*node, *self._notes()]
        return table + "".join(f"<p>{escape(printable(note))}</p>" for note in notes)


def compare(
    a: AnyModel,
    b: AnyModel,
    inputs: Inputs | Sequence[Inputs] | None = None,
    n: int = DRAWN,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    per_node: bool = False,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> Comparison:
    """Run two models on the same inputs and compare their outputs.

    The models may be of different dialects. Inputs and outputs are paired by name if the names are
    equal, otherwise by position. One model may have inputs that the other lacks if no output
    depends on them, such as labels.

    Parameters
    ----------
    a, b : Model or path-like
        The reference, and the model to check.
    inputs : mapping of str to array, or sequence of these, optional
        By the names of ``a``; by default `n` random inputs, see `draw_inputs`.
    rtol, atol : float, optional
        See `Tolerance`. If the outputs differ by more than the default tolerance, the rounding of
        ``a`` is measured, by runs with inputs and weights changed by one unit in the last place;
        sixteen times that is tolerated as well. An `atol` switches this off.
    per_node : bool
        Compare all values that both models compute, and find the first node whose value differs;
        on the first inputs that show a difference, else on the first with most values.
    shapes : mapping of str to shape, optional
        Shapes of random inputs that the model does not declare.

    Raises
    ------
    InputError
        The models have different inputs or numbers of outputs, or the inputs do not fit.
    PasslibError
        A model cannot run.

    Examples
    --------
    >>> import passlib as pl
    >>> x, w = pl.sym.var("x", shape=(2, 3)), pl.sym.var("w", shape=(3, 3))
    >>> left = pl.Model(pl.sym.FullyConnected(x, w, num_hidden=3, no_bias=True))
    >>> right = pl.Model(pl.sym.dot(x, w, transpose_b=True))
    >>> pl.workbench.compare(left, right).equal
    True
    """
    a, b = as_model(a), as_model(b)
    tolerance = Tolerance(rtol, atol)
    wide = b if set(a.inputs) < set(b.inputs) else a
    if inputs is not None:
        for each in [inputs] if isinstance(inputs, Mapping) else inputs:
            unknown = [name for name in each if name not in wide.inputs]
            if unknown:
                raise InputError(no_input(unknown, wide.inputs))
    sampled = sample(wide, inputs, n, shapes)
    given = sampled.inputs
    more = set(a.inputs) ^ set(b.inputs)
    if more and more <= set(wide.inputs) and more.isdisjoint(_read(wide, given[0])):
        names = {}
    else:
        names = pairs_of_names("inputs", a.inputs, b.inputs)
    reference = Reference(a, sampled, tolerance=tolerance)
    outputs = pairs_of_names("outputs", a.outputs, b.outputs)
    paired = tuple(_paired("input", names)) + tuple(_paired("output", outputs))
    found = replace(reference.judge(b, names), paired=paired)
    if not per_node:
        return found
    fed: Inputs = {}
    values: tuple[ValueDifference, ...] = ()
    for each in given:
        compared = value_differences((a, each), (b, _renamed(each, names)), tolerance)
        node = first_difference(compared)
        if node is not None or not fed or len(compared) > len(values):
            fed, values = each, compared
        if node is not None:
            break
    values = with_seconds((a, fed), (b, _renamed(fed, names)), values)
    return replace(found, node=node, values=values)


class Reference:
    """A correct model, with its outputs on some inputs; arguments as in `drawn`."""

    def __init__(
        self,
        model: Model,
        inputs: Inputs | Sequence[Inputs] | Sample | None = None,
        n: int = DRAWN,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
    ) -> None:
        self.model = model
        sampled = inputs if isinstance(inputs, Sample) else sample(model, inputs, n, shapes)
        self.inputs = sampled.inputs
        self._tolerance = tolerance or Tolerance()
        self._random = random_nodes(model)
        fixed = seeded(model) if self._random else None
        self._run = outputs_of if fixed is None else _run_afresh
        self._seeded = fixed or model
        self._outputs = [self._run(self._seeded, each) for each in self.inputs]
        self._is_half = half_unit(model) is not None
        self._rounding: dict[float | None, Rounding] = {}
        self._repeats: dict[tuple[int, float | None], list[list[Any]]] = {}
        self._sampled = sampled

    @cached_property
    def not_covered(self) -> tuple[str, ...]:
        """Sentences about gaps in the inputs, one for each gap."""
        gaps = self._sampled.not_covered
        if gaps is None:
            gaps = gaps_of(self.model, self.inputs)
        return (*gaps, *self._chance())

    def _chance(self) -> Iterator[str]:
        """Yield a sentence about random operators."""
        if not self._random:
            return
        names = listed(self._random[:3])
        if self._run is outputs_of:
            yield f"random numbers: {names} may draw others in each run, so that results differ"
        else:
            yield f"random numbers other than those of one seed: {names}"

    def _repeated(self, number: int, unit: float | None) -> list[list[Any]]:
        """Return the outputs on an input with other rounding, which are computed when needed."""
        if unit not in self._rounding:
            self._rounding[unit] = Rounding(self._seeded, self._run, unit)
        if (number, unit) not in self._repeats:
            self._repeats[number, unit] = self._rounding[unit].outputs_of(self.inputs[number])
        return self._repeats[number, unit]

    def _unit(self, model: Model) -> float | None:
        """Return the spacing of half precision, if the other model alone computes in it."""
        return None if self._is_half else half_unit(model)

    def compare(self, model: Model, names: Mapping[str, str] | None = None) -> Comparison:
        """Run another model and compare its outputs.

        Parameters
        ----------
        names : mapping of str to str, optional
            Its names of the inputs (default: paired by name or position).
        """
        outputs = self.model.outputs
        pairs = (
            pairs_of_names("inputs", self.model.inputs, model.inputs) if names is None else names
        )
        places = _places(outputs, model.outputs)
        fixed = model if self._run is outputs_of else seeded(model, self.model) or model
        unit = self._unit(model)
        tolerance = replace(self._tolerance, half=unit is not None)
        worst = [Difference(name) for name in outputs]
        for number, (each, left) in enumerate(zip(self.inputs, self._outputs, strict=True)):
            right = self._checked(fixed, _renamed(each, pairs), is_first=number == 0)
            for i, place in enumerate(places):

                def repeats(number: int = number, i: int = i) -> list[Any]:
                    return [outputs[i] for outputs in self._repeated(number, unit)]

                values = left[i], right[place]
                found = difference(outputs[i], *values, tolerance, repeats)
                if found.equal:
                    wrong = self._misdeclared(model, place, *values)
                    found = replace(found, what=wrong) if wrong else found
                worst[i] = found.worse(worst[i])
        return Comparison(tuple(worst), tuple(self.inputs))

    def run(self, model: Model) -> None:
        """Run another model on the inputs."""
        pairs = pairs_of_names("inputs", self.model.inputs, model.inputs)
        for each in self.inputs:
            self._run(model, _renamed(each, pairs))

    def _checked(self, model: Model, inputs: Inputs, *, is_first: bool) -> list[Any]:
        """Run another model; an error says on which inputs, unless these are the first."""
        try:
            return self._run(model, inputs)
        except PasslibError as error:
            if is_first:
                raise
            given = ", ".join(
                f"{printable(name)} {tuple(value.shape)}" for name, value in inputs.items()
            )
            raise type(error)(f"the checked model does not run on {given}: {error}") from error

    def _misdeclared(self, model: Model, place: int, left: Any, right: Any) -> str:
        """Return how the type that the other model's file states is wrong, or nothing."""
        stated = _stated(model)[place]
        own = _stated(self.model)
        if not hasattr(right, "dtype") or stated is None:
            return ""
        is_own_wrong = place < len(own) and _contradiction(own[place], left)
        return "" if is_own_wrong else _contradiction(stated, right)

    def judge(self, model: Model, names: Mapping[str, str] | None = None) -> Comparison:
        """Compare as `compare` does, and add what the inputs do not show.

        That is also what NaN, empty and unusual inputs show, as right models may differ on them.
        """
        found = self.compare(model, names)
        doubts = tuple(self._doubts(model, names)) if found.equal else ()
        return replace(found, not_covered=(*self.not_covered, *doubts))

    def _doubts(self, model: Model, names: Mapping[str, str] | None) -> Iterator[str]:
        """Yield sentences about other outputs on inputs that are not judged, such as NaN."""
        outputs = self.model.outputs
        pairs = (
            pairs_of_names("inputs", self.model.inputs, model.inputs) if names is None else names
        )
        places = _places(outputs, model.outputs)
        tolerance = replace(self._tolerance, half=self._unit(model) is not None)
        for what, inputs in self._sampled.probes if not self._random else ():
            run = _run_apart if what in CRASHING else outputs_of
            try:
                left = run(self.model, inputs)
            except PasslibError:
                continue
            try:
                right = run(model, _renamed(inputs, pairs))
            except PasslibError:
                yield f"{what}, on which only the first model runs"
                continue
            found = [
                difference(name, left[i], right[place], tolerance)
                for i, (name, place) in enumerate(zip(outputs, places, strict=True))
            ]
            wrong = [str(each) for each in found if not each.equal]
            if wrong:
                yield f"{what}, on which results differ: {'; '.join(wrong[:3])}"

    def interface_changes(self, model: Model) -> list[str]:
        """Return descriptions of inputs and outputs with other names."""
        before, after = self.model.outputs, model.outputs
        found = []
        if sorted(self.model.inputs) != sorted(model.inputs):
            found.append(_change("inputs", self.model.inputs, model.inputs))
        if before != after:
            found.append(_change("outputs", before, after))
        return found


def _run_afresh(model: Model, inputs: Inputs) -> list[Any]:
    """Run a copy, whose random operators begin with their seeds."""
    return outputs_of(copy.copy(model), inputs)


def _run_apart(model: Model, inputs: Inputs) -> list[Any]:
    """Run a model in a forked process, because kernels may crash or hang."""

    def work() -> list[Any]:
        signal.alarm(_LONGEST_PROBE)
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        return [
            value.asnumpy() if hasattr(value, "asnumpy") else value
            for value in _run_afresh(model, inputs)
        ]

    return survived(work)


def _stated(model: Model) -> list[TypeSpec | None]:
    """Return the types that the file of a model states for its outputs."""
    stated = dialects.find(model.dialect).output_types(model.data(whole=False))
    return [stated.get(name) for name in model.outputs]


def _contradiction(spec: TypeSpec | None, value: Any) -> str:
    """Return how a value contradicts a stated type, or nothing."""
    if spec is None or not hasattr(value, "dtype"):
        return ""
    if spec.dtype is not None and spec.dtype != value.dtype:
        return f"declared type {spec.dtype}, computed {value.dtype}"
    shape = tuple(value.shape)
    if spec.shape is None or (
        len(spec.shape) == len(shape)
        and all(size in (None, real) for size, real in zip(spec.shape, shape, strict=True))
    ):
        return ""
    sizes = ", ".join("?" if size is None else str(size) for size in spec.shape)
    return f"declared shape ({sizes}), computed {shape}"


def _renamed(inputs: Inputs, names: Mapping[str, str]) -> Inputs:
    return {names.get(name, name): value for name, value in inputs.items()}


def drawn(
    model: AnyModel,
    inputs: Inputs | Sequence[Inputs] | None,
    n: int = DRAWN,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> list[Inputs]:
    """Return the given inputs, or `n` random inputs on which the model runs, and some more.

    The first has ordinary values. If dimensions are open, the others have other batches and sizes;
    they have special values (0, 1, -1, halves) and large ones in turn. If these inputs leave parts
    of the model unused, such as a branch of If, up to eight inputs that reach them are searched
    and added. All is the same in each call, unless the search ends because of its time.

    Parameters
    ----------
    shapes : mapping of str to shape, optional
        Shapes of random inputs that the model does not declare.

    Raises
    ------
    ValueError
        `n` is less than 1.
    InputError
        The shape of an input is unknown.
    PasslibError
        The model does not run on random inputs; the message is that of the first attempt.

    Examples
    --------
    >>> import passlib as pl
    >>> model = pl.Model(pl.sym.relu(pl.sym.var("x")))
    >>> [inputs["x"].shape for inputs in pl.workbench.drawn(model, None, 2, {"x": (4, 3)})]
    [(4, 3), (4, 3)]
    """
    return sample(as_model(model), inputs, n, shapes).inputs


def _change(what: str, before: Sequence[str], after: Sequence[str]) -> str:
    return f"the {what} were {listed(list(before))}, and are {listed(list(after))}"


def _places(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Return the position in the second model of each output of the first model."""
    pairs = pairs_of_names("outputs", left, right)
    if len(set(right)) < len(right) or len(pairs) < len(left):
        return list(range(len(left)))
    return [right.index(pairs[name]) for name in left]


def _paired(what: str, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a text for each pair of other names."""
    return (f"{what} {old} with {new}" for old, new in names.items() if old != new)


def names_of_part(model: Model, part: Model) -> dict[str, str]:
    """Return the names of inputs in another model, which may have fewer, that has other names."""
    mine = model.inputs
    is_part = set(part.inputs) <= set(mine) or len(part.inputs) != len(mine)
    return {} if is_part else pairs_of_names("inputs", mine, part.inputs)


def _read(model: Model, inputs: Inputs) -> set[str]:
    """Return the inputs that the outputs depend on, for these shapes."""
    arrays = {name: np.asarray(value) for name, value in inputs.items() if name in model.inputs}
    shapes = {name: array.shape for name, array in arrays.items()}
    types = {name: array.dtype for name, array in arrays.items()}
    lowered = lowered_for(model.symbol, model.data(origins=False), shapes, types)
    flow = flow_of(model)
    reached = {name for e in model.symbol.entries for name in flow.anything[e.node, e.index]}
    return reached & set(lowered.input_names) - lowered.unread


def pairs_of_names(what: str, left: Sequence[str], right: Sequence[str]) -> dict[str, str]:
    """Return the name in the second model of each name in the first model.

    Equal names belong together, and the others by position.
    """
    if sorted(left) == sorted(right):
        return {name: name for name in left}
    common = set(left) & set(right)
    mine = [name for name in left if name not in common]
    others = [name for name in right if name not in common]
    if len(left) != len(right):
        only = [
            f"only the {which} has {listed(names)}"
            for which, names in (("first", mine), ("second", others))
            if names
        ]
        raise InputError(
            f"the models have different {what}: {'; '.join(only) or 'some name occurs twice'}"
        )
    if len(mine) != len(others) or len(common) + len(mine) != len(left):
        return dict(zip(left, right, strict=True))
    return {**{name: name for name in common}, **dict(zip(mine, others, strict=True))}


class ResultsDifferError(PassResultError):
    """A step changed the outputs of the model.

    Attributes
    ----------
    comparison : Comparison or None
        None if the names of inputs or outputs changed.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x", shape=(2, 3))
    >>> comparison = pl.workbench.compare(pl.Model(pl.sym.relu(x)), pl.Model(pl.sym.relu(x) + 1))
    >>> error = pl.workbench.ResultsDifferError("step 1 changes results", comparison=comparison)
    >>> error.comparison.equal
    False
    """

    def __init__(self, message: str, *, comparison: Comparison | None = None) -> None:
        super().__init__(message)
        self.comparison = comparison


class Check(Instrument):
    """An instrument that compares the outputs after each changing step with the first model's.

    Parameters
    ----------
    inputs : mapping of str to array, or sequence of these, optional
        By default `n` random inputs.
    shapes : mapping of str to shape, optional
        Shapes of random inputs that the model does not declare.

    Examples
    --------
    >>> import passlib as pl
    >>> @pl.graph_pass
    ... def exp_to_sqrt(graph: pl.Graph) -> None:
    ...     for node in [each for each in graph.sorted() if each.op == "exp"]:
    ...         node.op = "sqrt"
    >>> model = pl.Model(pl.sym.exp(pl.sym.var("x", shape=(2,)), name="y"))
    >>> try:
    ...     _ = pl.Pipeline("exp_to_sqrt").run(model, [pl.workbench.Check()])
    ... except pl.PipelineError as error:
    ...     print(type(error.__cause__).__name__)
    ResultsDifferError
    """

    def __init__(
        self,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        n: int = DRAWN,
        *,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
    ) -> None:
        self._given = inputs, n, tolerance, shapes
        self._reference: Reference | None = None

    def before_pass(self, step: Step, model: Model) -> None:
        """Keep the first model."""
        if self._reference is None:
            self._reference = Reference(model, *self._given)

    def after_pass(self, step: Step, model: Model, result: StepResult) -> None:
        """Compare the result of a step with the first model.

        Raises
        ------
        ResultsDifferError
            The outputs differ.
        """
        if not result.modified or self._reference is None:
            return
        changes = self._reference.interface_changes(model)
        if changes:
            raise ResultsDifferError(
                f"the model after {step} has other names: {'; '.join(changes)}"
            )
        found = self._reference.compare(model)
        if not found.equal:
            worst = [str(output) for output in found.outputs if not output.equal]
            raise ResultsDifferError(
                f"the model after {step} computes other values: {'; '.join(worst[:3])}",
                comparison=found,
            )
