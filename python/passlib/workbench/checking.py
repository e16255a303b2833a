"""An instrument that compares the numbers of every step with those of the model before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.errors import PassResultError
from passlib.library.pipeline import Step
from passlib.model import Model
from passlib.passes import Instrument, StepResult
from passlib.workbench.comparison import DRAWN, Comparison, Reference
from passlib.workbench.numbers import Tolerance


class ResultsDifferError(PassResultError):
    """A step changed what the model computes.

    Attributes
    ----------
    comparison : Comparison or None
        None if the names of inputs or outputs have changed.

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
    """Compares the numbers of the model after every step that changed it with the first model's.

    Parameters
    ----------
    inputs : mapping of str to array, or sequence of these, optional
        By default `n` are drawn for the first model.
    n : int
    tolerance : Tolerance, optional
    shapes : mapping of str to shape, optional
        Of inputs that the model does not declare, for drawing.

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
        """Compare a model with the first one.

        Raises
        ------
        ResultsDifferError
            They compute different numbers.
        """
        if not result.modified or self._reference is None:
            return
        changes = self._reference.interface_changes(model)
        if changes:
            raise ResultsDifferError(f"the model after {step} is another one: {'; '.join(changes)}")
        found = self._reference.compare(model)
        if not found.equal:
            worst = [str(output) for output in found.outputs if not output.equal]
            raise ResultsDifferError(
                f"the model after {step} computes something else: {'; '.join(worst[:3])}",
                comparison=found,
            )
