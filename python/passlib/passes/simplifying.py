"""`passlib.simplify` as a step of a pipeline, which instruments can look on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from passlib.graph.plain import PlainGraph
from passlib.library.call import Backend
from passlib.library.pipeline import Step
from passlib.library.pipeline.cost import has_nested
from passlib.library.pipeline.simplification import simplified
from passlib.model import Model
from passlib.model.edits import with_nested, with_sizes

_NESTED: Final = "simplifyNested"


class Watcher(Protocol):
    """Runs steps on models and records what they did."""

    def run_backend(
        self, step: Step, options: Mapping[str, Any], subject: Model, backend: str | Backend
    ) -> Model:
        """Run one pass."""

    def watch(self, step: Step, subject: Model, run: Callable[[], Model]) -> Model:
        """Run what counts as one step."""


def simplify_watched(
    model: Model,
    watcher: Watcher,
    *,
    skip: Collection[str] = (),
    fixed: Mapping[str, Sequence[int | None]] | None = None,
    **arguments: Any,
) -> Model:
    """Simplify a model as `Model.simplify` does, with a step for each pass that is tried.

    ``simplifyNested`` is the step that simplifies nested graphs, each as a model of its own.

    Parameters
    ----------
    model : Model
    watcher : Watcher
    skip : collection of str
        Standard passes that are left out.
    fixed : mapping of str to shape, optional
        Sizes of inputs.
    **arguments
        Those of `passlib.simplify`.
    """
    if fixed:
        model = with_sizes(model, fixed)

    def inside(outside: Model) -> Model:
        return with_nested(outside, lambda nested: nested.simplify(skip=skip, **arguments))

    outside = simplified(_Watched(model, watcher), skip=skip, **arguments).model
    if not has_nested(outside.symbol):
        return outside
    changed = watcher.watch(Step(_NESTED), outside, partial(inside, outside))
    while changed is not outside:
        outside = simplified(_Watched(changed, watcher), skip=skip, **arguments).model
        if outside is changed:
            break
        # Mostly nothing is left to do, which is no step of its own.
        changed = inside(outside)
        if changed is not outside:
            changed = watcher.watch(Step(_NESTED), outside, partial(_itself, changed))
    return outside


def _itself(model: Model) -> Model:
    return model


class _Watched:
    """A model as simplification sees it: steps on it are recorded."""

    def __init__(self, model: Model, watcher: Watcher) -> None:
        self.model = model
        self._watcher = watcher

    @property
    def symbol(self) -> PlainGraph:
        return self.model.symbol

    @property
    def args(self) -> Mapping[str, Any]:
        return self.model.args

    @property
    def aux(self) -> Mapping[str, Any]:
        return self.model.aux

    @property
    def dialect(self) -> str:
        return self.model.dialect

    def optimize_for(self, backend: Backend, /, **options: Any) -> _Watched:
        shown = [(k, str(v)) for k, v in options.items() if k != "skip_infer"]
        step = Step(backend.declaration.name, tuple(shown))
        after = self._watcher.run_backend(step, options, self.model, backend)
        return _Watched(after, self._watcher)
