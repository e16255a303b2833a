"""`passlib.simplify` as a pipeline, which instruments can look on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from passlib.errors import UnsupportedError
from passlib.graph.plain import PlainGraph
from passlib.library import load_standard
from passlib.library.backends import find_standard
from passlib.library.call import Backend
from passlib.library.pipeline import Step, parse
from passlib.library.pipeline.simplification import has_nested, simplified
from passlib.model import Model
from passlib.model.edits import with_nested
from passlib.passes.instruments import Instrument
from passlib.passes.observer import ModelObserver
from passlib.passes.pipeline import Pipeline
from passlib.passes.result import PipelineResult

__all__ = ["Simplification", "pipeline_named"]

_NAME: Final = "simplify"
_NESTED: Final = "simplifyNested"


class Simplification(Pipeline):
    """The standard passes, round by round, of which a step is kept if the cost falls.

    The steps of the result are all those that were tried; ``simplifyNested`` is the one that
    simplifies nested graphs, each as a model of its own.

    Parameters
    ----------
    skip : collection of str
        Standard passes that are left out.

    Raises
    ------
    PasslibError
        There is no standard pass of such a name.

    Examples
    --------
    >>> import passlib as pl
    >>> x = pl.sym.var("x")
    >>> result = pl.passes.Simplification().run(pl.Model(pl.sym.exp(x) + pl.sym.exp(x)))
    >>> len(result.model.symbol.nodes())
    3
    """

    __slots__ = ("_skip",)

    def __init__(self, skip: Collection[str] = ()) -> None:
        super().__init__("")
        load_standard()
        for name in skip:
            find_standard(name)
        self._skip = tuple(skip)

    def run(
        self,
        model: Model,
        instruments: Sequence[Instrument] = (),
        *,
        isolate: bool = False,
        timeout: float | None = None,
        memory: int | None = None,
        **inference: Any,
    ) -> PipelineResult:
        """Simplify a model, as `Pipeline.run` runs a pipeline; the given one stays unchanged.

        Raises
        ------
        PipelineError
            A step failed, or an instrument refused its result.
        """
        if isolate or timeout is not None or memory is not None:
            return super().run(
                model, instruments, isolate=isolate, timeout=timeout, memory=memory, **inference
            )
        observer = ModelObserver(list(instruments), inference)
        last = simplified(_Observed(model, observer, self._skip)).model
        if has_nested(last.symbol):
            outside, again = last, Simplification(self._skip)
            last = observer.watch(
                Step(_NESTED, ()),
                outside,
                lambda: with_nested(outside, lambda nested: again.run(nested).model),
            )
            if last is not outside:
                last = simplified(_Observed(last, observer, self._skip)).model
        return PipelineResult(last, tuple(observer.results), model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Simplification) and self._skip == other._skip

    def __hash__(self) -> int:
        return hash((_NAME, self._skip))

    def __str__(self) -> str:
        return f"{_NAME}{{skip=[{', '.join(self._skip)}]}}" if self._skip else _NAME


def pipeline_named(text: str) -> Pipeline:
    """Return the pipeline of a text, which may be ``simplify`` or ``simplify{skip=[a, b]}``.

    Raises
    ------
    FormatError
        The text is no pipeline.

    Examples
    --------
    >>> from passlib.passes import pipeline_named
    >>> type(pipeline_named("simplify{skip=[foldLinear]}")).__name__
    'Simplification'
    """
    steps = parse(text) if text.strip() else ()
    if len(steps) == 1 and isinstance(steps[0], Step) and steps[0].name == _NAME:
        options = dict(steps[0].options)
        skip = options.pop("skip", "").strip("[]")
        if options:
            raise UnsupportedError(f"{_NAME} has no option {next(iter(options))!r}, only skip")
        return Simplification([name.strip() for name in skip.split(",") if name.strip()])
    return Pipeline(text)


class _Observed:
    """A model as simplification sees it: steps on it are recorded."""

    def __init__(self, model: Model, observer: ModelObserver, skip: Collection[str]) -> None:
        self.model = model
        self._observer = observer
        self._skip = skip

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

    def optimize_for(self, backend: Backend, /, **options: Any) -> _Observed:
        name = backend.declaration.name
        if name in self._skip:
            return self
        shown = [(k, str(v)) for k, v in options.items() if k != "skip_infer"]
        step = Step(name, tuple(shown))
        after = self._observer.apply(step, options, self.model, backend)
        return _Observed(after, self._observer, self._skip)
