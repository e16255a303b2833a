"""Compares the outputs of two models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from passlib.errors import GraphError, InputError, PasslibError, PassResultError, listed
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.model.inputs import lowered_for
from passlib.passes import Instrument, StepResult
from passlib.workbench.inputs import draw_inputs, input_shapes
from passlib.workbench.numbers import Difference, Tolerance, difference
from passlib.workbench.parts import NodeDifference, first_difference, outputs_of
from passlib.workbench.rounding import Rounding

Inputs = Mapping[str, Any]

DRAWN: Final = 3
"""Default number of random inputs of all comparisons."""


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

    @property
    def equal(self) -> bool:
        """Whether all outputs agree within the tolerance."""
        return all(output.equal for output in self.outputs)

    def __str__(self) -> str:
        lines = map(str, self.outputs)
        return "\n".join([*lines, *([str(self.node)] if self.node is not None else [])])


def compare(
    a: Model,
    b: Model,
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
    a, b : Model
        The reference, and the model to check.
    inputs : mapping of str to array, or sequence of these, optional
        By the names of ``a``; by default `n` random inputs, see `draw_inputs`.
    rtol, atol : float, optional
        See `Tolerance`. If the outputs differ by more than the default tolerance, the rounding of
        ``a`` is measured, by runs with inputs and weights changed by one unit in the last place;
        sixteen times that is tolerated as well. An `atol` switches this off.
    per_node : bool
        Find the first node whose value differs, by computing all values of both models.
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
    tolerance = Tolerance(rtol, atol)
    wide = b if set(a.inputs) < set(b.inputs) else a
    given = drawn(wide, inputs, n, shapes)
    more = set(a.inputs) ^ set(b.inputs)
    if more and more <= set(wide.inputs) and more.isdisjoint(_read(wide, given[0])):
        names = {}
    else:
        names = _pairs("inputs", a.inputs, b.inputs)
    found = Reference(a, given, tolerance=tolerance).compare(b, names)
    if not per_node:
        return found
    nodes = (first_difference((a, each), (b, _renamed(each, names)), tolerance) for each in given)
    return replace(found, node=next(filter(None, nodes), None))


class Reference:
    """A correct model, with its outputs on some inputs; arguments as in `drawn`."""

    def __init__(
        self,
        model: Model,
        inputs: Inputs | Sequence[Inputs] | None = None,
        n: int = DRAWN,
        tolerance: Tolerance | None = None,
        shapes: Mapping[str, Sequence[int | None]] | None = None,
    ) -> None:
        self.model = model
        self.inputs = drawn(model, inputs, n, shapes)
        self._tolerance = tolerance or Tolerance()
        self._outputs = [outputs_of(model, each) for each in self.inputs]
        self._rounding = Rounding(model)
        self._repeats: dict[int, list[list[Any]]] = {}

    def _repeated(self, number: int) -> list[list[Any]]:
        """Return the outputs on an input with other rounding, which are computed when needed."""
        if number not in self._repeats:
            self._repeats[number] = self._rounding.outputs_of(self.inputs[number])
        return self._repeats[number]

    def compare(self, model: Model, names: Mapping[str, str] | None = None) -> Comparison:
        """Run another model and compare its outputs.

        Parameters
        ----------
        names : mapping of str to str, optional
            Its names of the inputs (default: paired by name or position).
        """
        outputs = self.model.outputs
        pairs = _pairs("inputs", self.model.inputs, model.inputs) if names is None else names
        places = _places(outputs, model.outputs)
        worst = [Difference(name) for name in outputs]
        for number, (each, left) in enumerate(zip(self.inputs, self._outputs, strict=True)):
            right = outputs_of(model, _renamed(each, pairs))
            for i, place in enumerate(places):

                def repeats(number: int = number, i: int = i) -> list[Any]:
                    return [outputs[i] for outputs in self._repeated(number)]

                values = left[i], right[place]
                found = difference(outputs[i], *values, self._tolerance, repeats)
                worst[i] = found.worse(worst[i])
        return Comparison(tuple(worst), tuple(self.inputs))

    def interface_changes(self, model: Model) -> list[str]:
        """Return descriptions of inputs and outputs with other names."""
        before, after = self.model.outputs, model.outputs
        found = []
        if sorted(self.model.inputs) != sorted(model.inputs):
            found.append(_change("inputs", self.model.inputs, model.inputs))
        if before != after:
            found.append(_change("outputs", before, after))
        return found


def _renamed(inputs: Inputs, names: Mapping[str, str]) -> Inputs:
    return {names.get(name, name): value for name, value in inputs.items()}


def drawn(
    model: Model,
    inputs: Inputs | Sequence[Inputs] | None,
    n: int = DRAWN,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> list[Inputs]:
    """Return the given inputs, or `n` random inputs on which the model runs.

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
    if inputs is not None:
        return [inputs] if isinstance(inputs, Mapping) else list(inputs)
    if n < 1:
        raise ValueError(f"n is {n}, but must be at least 1")
    refusal: PasslibError | None = None
    for specs in input_shapes(model, shapes):
        first = draw_inputs(model, specs)
        try:
            outputs_of(model, first)
        except PasslibError as error:
            refusal = refusal or error
            continue
        return [first, *(draw_inputs(model, specs, seed) for seed in range(1, n))]
    missing = [name for name in model.inputs if name not in specs]
    if missing:
        raise InputError(
            f"the model does not state the shapes of {listed(missing)}; give them, as "
            f"shapes={{{missing[0]!r}: (1, 3, 224, 224)}} or --shape {missing[0]}:1,3,224,224"
        ) from refusal
    raise GraphError(
        f"the model does not run on random inputs: {refusal}; give shapes (--shape, shapes=) or "
        "arrays (--inputs, inputs=) that it takes"
    ) from refusal


def _change(what: str, before: Sequence[str], after: Sequence[str]) -> str:
    return f"the {what} were {listed(list(before))}, and are {listed(list(after))}"


def _places(left: Sequence[str], right: Sequence[str]) -> list[int]:
    """Return the position in the second model of each output of the first model."""
    pairs = _pairs("outputs", left, right)
    if len(set(right)) < len(right) or len(pairs) < len(left):
        return list(range(len(left)))
    return [right.index(pairs[name]) for name in left]


def _read(model: Model, inputs: Inputs) -> set[str]:
    """Return the inputs that the outputs depend on, for these shapes."""
    arrays = {name: np.asarray(value) for name, value in inputs.items() if name in model.inputs}
    shapes = {name: array.shape for name, array in arrays.items()}
    types = {name: array.dtype for name, array in arrays.items()}
    lowered = lowered_for(model.symbol, model.data(origins=False), shapes, types)
    return set(lowered.input_names) - lowered.unread


def _pairs(what: str, left: Sequence[str], right: Sequence[str]) -> dict[str, str]:
    """Return the name in the second model of each name in the first model."""
    if sorted(left) == sorted(right):
        return {name: name for name in left}
    if len(left) != len(right):
        raise InputError(
            f"the models have different {what}: {listed(list(left))}; and {listed(list(right))}"
        )
    return dict(zip(left, right, strict=True))


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
