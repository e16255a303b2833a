"""A pipeline of which only the first rewrites are applied."""

from __future__ import annotations

from collections.abc import Sequence

from passlib.errors import GraphError
from passlib.model import Model
from passlib.passes import Instrument, Pipeline, PipelineResult
from passlib.workbench.rewrites import Rewriting
from passlib.workbench.trace import Trace


def run_limited(
    model: Model, pipeline: Pipeline, limit: int, instruments: Sequence[Instrument] = ()
) -> tuple[PipelineResult, int, int]:
    """Run a pipeline, and keep only so many of the rewrites that its steps made, the first ones.

    Where the first rewrites of a step do not make a sound graph without those after them, fewer
    are kept.

    Parameters
    ----------
    model : Model
    pipeline : Pipeline
    limit : int
        How many rewrites are kept.
    instruments : sequence of Instrument
        Look on while the whole pipeline runs.

    Returns
    -------
    PipelineResult, int, int
        With the steps up to the last one of which a rewrite is kept; how many are kept; and of
        how many.
    """
    trace = Trace()
    result = pipeline.run(model, [trace, *instruments])
    kept, count, last, steps = 0, 0, model, 0
    is_open = True
    for state in trace.chain(result.model):
        rewriting = Rewriting(state.before, state.after)
        made = len(rewriting.rewrites)
        count += made
        if is_open and kept + made <= limit:
            kept, last, steps = kept + made, state.after, state.number
        elif is_open:
            is_open = False
            fitting = _fitting(rewriting, limit - kept)
            if fitting:
                last, steps = rewriting.with_only(rewriting.rewrites[:fitting]), state.number
                kept += fitting
    return PipelineResult(last, result.steps[:steps], model), kept, count


def _fitting(rewriting: Rewriting, most: int) -> int:
    """Return how many of the first rewrites make a sound graph, at most so many."""
    return next((n for n in range(most, 0, -1) if _is_sound(rewriting, n)), 0)


def _is_sound(rewriting: Rewriting, count: int) -> bool:
    try:
        rewriting.with_only(rewriting.rewrites[:count])
    except GraphError:
        return False
    return True
