"""Steps of a pipeline on a model, with instruments that look on."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from passlib.errors import PassError, PasslibError, PipelineError
from passlib.graph.native import without_origins
from passlib.library.backends import find_pipeline
from passlib.library.output import recorded
from passlib.library.pipeline import Step, weights_differ
from passlib.model import Model
from passlib.passes.instruments import Instrument
from passlib.passes.result import StepResult

logger = logging.getLogger(__name__)


class ModelObserver:
    """Runs steps on models and records what they did.

    Parameters
    ----------
    instruments : sequence of Instrument
    inference : mapping
        Passed on to `Model.optimize_for`.

    Attributes
    ----------
    results : list of StepResult
    """

    def __init__(self, instruments: Sequence[Instrument], inference: Mapping[str, Any]) -> None:
        self._instruments = instruments
        self._inference = inference
        self.results: list[StepResult] = []

    def apply(self, step: Step, options: dict[str, Any], subject: Model) -> Model:
        """Run one step, a pass or a named pipeline.

        Raises
        ------
        PipelineError
            It failed, or an instrument refused the result.
        """
        named = find_pipeline(step.name)
        if named is not None:
            made: Model = named.run(subject, options, self.watch)
            return made
        given = {**self._inference, **options}
        return self.watch(step, subject, lambda: subject.optimize_for(step.name, **given))

    def watch(self, step: Step, subject: Model, run: Callable[[], Model]) -> Model:
        """Run what counts as one step, however it makes the model.

        Raises
        ------
        PipelineError
            It failed, or an instrument refused the result.
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
        """Tell the other instruments of an error, which the mistakes of none may hide."""
        for instrument in self._instruments:
            if instrument is not guilty:
                with _logged(instrument):
                    instrument.failed(step, subject, error)

    def differs(self, before: Model, after: Model) -> bool:
        """Whether the graph or a weight changed."""
        return not before.symbol.graph.equals(after.symbol.graph) or _weights_differ(before, after)


@contextmanager
def _logged(instrument: Instrument) -> Iterator[None]:
    """Log an exception instead of raising it."""
    try:
        yield
    except (OSError, PasslibError) as error:
        logger.error("%s failed when told of an error: %s", type(instrument).__name__, error)
    except Exception:
        logger.exception("%s failed when told of an error", type(instrument).__name__)


def _result(step: Step, before: Model, after: Model, seconds: float, printed: str) -> StepResult:
    old, new = before.symbol.graph, after.symbol.graph
    same = old.equals(new)
    # Which nodes a node stands for is no change of it.
    parts = ((), ()) if same else without_origins(old).difference(without_origins(new))
    changed = sum(map(len, parts))
    return StepResult(
        step.name,
        str(step),
        seconds,
        len(old),
        len(new),
        changed,
        not same or _weights_differ(before, after),
        tuple(printed.splitlines()),
    )


def _weights_differ(before: Model, after: Model) -> bool:
    return weights_differ(before.args, after.args) or weights_differ(before.aux, after.aux)
