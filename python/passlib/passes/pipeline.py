"""Pipelines: sequences of passes, checked before they run and observed while they run."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from passlib.errors import PassError, PasslibError, PipelineError, UnsupportedError, short_repr
from passlib.graph.plain import operators_of, without_origins
from passlib.library.call import recorded
from passlib.library.pipeline import (
    Step,
    Steps,
    check,
    execute,
    parse,
    steps_of,
    text_of,
)
from passlib.model import Model, load
from passlib.model.loading import AnyModel
from passlib.model.model import INFERENCE, ModelSteps
from passlib.passes.instruments import Instrument
from passlib.passes.result import PipelineResult, StepResult

logger = logging.getLogger(__name__)


class ModelObserver(ModelSteps):
    """Runs steps on models, calls instruments and records results.

    Parameters
    ----------
    inference : mapping
        Passed to `Model.optimize_for`.
    """

    def __init__(self, instruments: Sequence[Instrument], inference: Mapping[str, Any]) -> None:
        self._instruments = instruments
        super().__init__(inference)
        self.results: list[StepResult] = []

    def watch(self, step: Step, subject: Model, run: Callable[[], Model]) -> Model:
        """Run a function as one step.

        Raises
        ------
        PipelineError
            The step failed, or an instrument rejected its result.
        """
        looking: Instrument | None = None
        try:
            for looking in self._instruments:
                looking.before_pass(step, subject)
            looking = None
            with recorded() as printed:
                start = time.perf_counter()
                after = run()
                seconds = time.perf_counter() - start
            result = _result(step, subject, after, seconds, "".join(printed))
            for looking in self._instruments:
                looking.after_pass(step, after, result)
        except Exception as error:
            self._tell(step, subject, error, looking)
            number = len(self.results) + 1
            reason = str(error)
            if looking is not None and not isinstance(error, PasslibError):
                reason = f"{type(looking).__name__} raised {type(error).__name__}: {error}"
            raise PipelineError(
                f"step {number} of the pipeline, {step}, failed: {reason}",
                step=str(step),
                model=subject,
                messages=error.messages if isinstance(error, PassError) else (),
            ) from error
        self.results.append(result)
        return after

    def _tell(
        self, step: Step, subject: Model, error: Exception, guilty: Instrument | None
    ) -> None:
        """Report an error to the other instruments; log their errors."""
        for instrument in self._instruments:
            if instrument is guilty:
                continue
            name = type(instrument).__name__
            try:
                instrument.failed(step, subject, error)
            except (OSError, PasslibError) as other:
                logger.error("%s failed while handling an error: %s", name, other)
            except Exception:
                logger.exception("%s failed while handling an error", name)


_MOST_NAMED: Final = 20_000
"""Results keep the names of at most this many changed nodes, to save memory."""


def _result(step: Step, before: Model, after: Model, seconds: float, printed: str) -> StepResult:
    old, new = before.symbol.graph, after.symbol.graph
    same = old.equals(new)
    # The origin of a node does not count as a change.
    parts = () if same else without_origins(old).difference(without_origins(new))
    names = tuple(chain.from_iterable(parts))
    removed, added, changed = parts or ((), (), ())
    were, are = ({*chain(*graph.variables({}))} if names else set() for graph in (old, new))
    count = sum(name not in were for name in removed) + sum(name not in are for name in added)
    count += sum(name not in were or name not in are for name in changed)
    return StepResult(
        step.name,
        str(step),
        seconds,
        operators_of(old).total(),
        operators_of(new).total(),
        count,
        not same or after.differs_from(before),
        tuple(printed.splitlines()),
        names if len(names) <= _MOST_NAMED else (),
    )


@short_repr
class Pipeline:
    """A sequence of passes. Immutable; pipelines with equal steps and texts are equal.

    Parameters
    ----------
    steps : str or iterable
        A text such as ``"removeDeadNodes, repeat<4>(mergeEqualNodes, fold{level=2})"``, or a list
        of names, functions decorated with `graph_pass`, pairs of one of these and a mapping of
        options, and pipelines. A single function, pair or pipeline needs no list.

    Raises
    ------
    FormatError
        The text is malformed.
    TypeError
        An item has another type.

    Examples
    --------
    >>> import passlib as pl
    >>> str(pl.Pipeline(["removeDeadNodes", ("mergeEqualNodes", {"verbose": True})]))
    'removeDeadNodes, mergeEqualNodes{verbose=True}'
    """

    __slots__ = ("_steps", "_text")

    def __init__(self, steps: str | Iterable[Any]) -> None:
        made: Steps
        if isinstance(steps, str):
            made = parse(steps) if steps.strip() else ()
        elif (
            isinstance(steps, Iterable)
            and not isinstance(steps, (bytes, Mapping))
            and not hasattr(steps, "declaration")
        ):
            listed = [steps] if _is_pair(steps) else steps
            made = tuple(step for item in listed for step in _steps_of(item))
        else:
            made = _steps_of(steps)
        self._steps = made
        self._text = steps if isinstance(steps, str) else ""

    @property
    def steps(self) -> Steps:
        """The steps, each a `Step` or a `Repeat`."""
        return self._steps

    def check(self, dialect: str | None = None) -> None:
        """Check the names and the options of all steps.

        Parameters
        ----------
        dialect : str, optional
            Check that all passes support this dialect.

        Raises
        ------
        PasslibError
            A pass or option is unknown, or a value is invalid; the message contains the position.
        UnsupportedError
            A pass does not support the dialect.
        """
        check(self._steps, self._text, dialect)

    def run(
        self,
        model: AnyModel,
        instruments: Sequence[Instrument] = (),
        *,
        isolate: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
        **inference: Any,
    ) -> PipelineResult:
        """Run the passes in order and return the result; the given model stays unchanged.

        Parameters
        ----------
        instruments : sequence of Instrument
            Called in this order.
        isolate : bool
            Run in a separate process, without instruments, which loads libraries and Python files
            again. A crash, an exit, a timeout or a lack of memory raises an `IsolatedError` with
            the pass and the folder of a reproducer for ``passlib run``.
        timeout : float, optional
            Time limit of the isolated process in seconds.
        memory : int, optional
            Limit of its address space in bytes.
        **inference
            Passed to each `Model.optimize_for`: ``shapes`` and ``types`` of inputs, ``skip_infer``,
            ``keep_inferred``.

        Raises
        ------
        TypeError
            An argument has a wrong type.
        PasslibError
            See `check`.
        PipelineError
            A step failed, or an instrument rejected its result; the error holds the step's input.
        """
        if isinstance(model, (str, os.PathLike, bytes)):
            model = load(model)
        _check_arguments(model, instruments, inference)
        options = check(self._steps, self._text, model.dialect)
        if isolate:
            if instruments:
                raise UnsupportedError("isolate=True does not support instruments")
            from passlib.passes.isolation import run_isolated

            return run_isolated(
                model, self._steps, timeout=timeout, memory=memory, inference=inference
            )
        if timeout is not None or memory is not None:
            raise UnsupportedError("timeout and memory need isolate=True")
        observer = ModelObserver(list(instruments), inference)
        last = execute(self._steps, model, options, observer)
        return PipelineResult(last, tuple(observer.results), model)

    def __add__(self, other: Pipeline) -> Pipeline:
        return Pipeline([self, other])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pipeline) and self._steps == other._steps

    def __hash__(self) -> int:
        return hash(self._steps)

    def __str__(self) -> str:
        return text_of(self._steps)

    def __repr__(self) -> str:
        return f"Pipeline({str(self)!r})"


def _steps_of(item: Any) -> Steps:
    return item.steps if isinstance(item, Pipeline) else steps_of(item)


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping)


def _check_arguments(model: Any, instruments: Any, inference: Mapping[str, Any]) -> None:
    if not isinstance(model, Model):
        raise TypeError(
            f"a pipeline runs on a Model, not {type(model).__name__}: make one with "
            "passlib.Model(symbol, args, aux) or passlib.load(path)"
        )
    unknown = sorted(inference.keys() - INFERENCE)
    if unknown:
        raise TypeError(
            f"run has no parameter {unknown[0]!r}; write the options of a pass after its name: "
            "'first, second{level=2}'"
        )
    if not isinstance(instruments, Iterable):
        raise TypeError(f"instruments must be a list, such as [{type(instruments).__name__}()]")
    for each in instruments:
        methods = (getattr(each, name, None) for name in ("before_pass", "after_pass", "failed"))
        if isinstance(each, type) or not all(map(callable, methods)):
            raise TypeError(
                f"an instrument needs the methods of passlib.passes.Instrument, unlike {each!r}"
            )
