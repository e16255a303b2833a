"""Models that passes and pipelines make of other models."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, TypeVar

from passlib.errors import UnsupportedError
from passlib.files.regular import collection_off
from passlib.library.backends import find_pipeline, pipelines
from passlib.library.lent import NumpyArrays
from passlib.library.pipeline import (
    Step,
    Steps,
    check,
    execute,
    has_named,
    steps_of,
    text_of_shapes,
    weights_differ,
)
from passlib.model.parts import ModelParts, drop_removed
from passlib.model.sequence import as_steps, refuse_options

_M = TypeVar("_M", bound="OptimizedModel")

INFERENCE: Final = frozenset(
    ("shapes", "types", "shape_dict", "type_dict", "stype_dict", "skip_infer", "keep_inferred")
)
"""Keywords of `Model.optimize_for` that are no options of a pass."""


class OptimizedModel(ModelParts):
    """The parts of a `Model`, with passes that make other models of it."""

    def optimize_for(self: _M, name: Any, /, **options: Any) -> _M:
        """Run a pass or a pipeline and return the resulting model; this one stays unchanged.

        The pass works on copies of the weights. Both models share the weights that it does not
        modify; their copies are freed.

        Parameters
        ----------
        name : str, list or Pipeline
            Name of a pass, ``simplify`` or ``clean`` (see `passlib.simplify`), text of a pipeline,
            or a list, as of `ModelGraph.optimize_for`.
        **options
            Passed to the pass as ``str(value)``, except ``shapes`` and ``types`` (in MXNet
            ``shape_dict`` and ``type_dict``) of inputs, ``stype_dict``, ``skip_infer`` and
            ``keep_inferred``, see `ModelGraph.optimize_for`.

        Raises
        ------
        PasslibError
            The pass does not exist.
        PassError
            The pass failed; the message includes that of its library.
        """
        steps = as_steps(name)
        if steps is not None and has_named(steps):
            return self._through(steps, name if isinstance(name, str) else "", options)
        # Read-only arrays are lent to a pass as copies; those that it changed replace them here.
        args, aux = NumpyArrays(self._args), NumpyArrays(self._aux)
        graph = self._symbol.optimize_for(name, args, aux, **options)
        with collection_off():
            drop_removed(self._symbol, graph, args, aux)
            return self.of_parts(graph, args, aux, self._template, owned=True)

    def _through(self: _M, steps: Steps, text: str, options: Mapping[str, Any]) -> _M:
        """Run steps of which one is a named pipeline."""
        inference = {key: value for key, value in options.items() if key in INFERENCE}
        own = {key: value for key, value in options.items() if key not in INFERENCE}
        if all(isinstance(step, Step) and find_pipeline(step.name) for step in steps):
            _refuse_types(inference)
        if len(steps) == 1 and isinstance(steps[0], Step) and not steps[0].options:
            if isinstance(own.get("fixed"), Mapping):
                own["fixed"] = text_of_shapes(own["fixed"])
            steps = steps_of((steps[0].name, own))
        else:
            refuse_options(own)
        return execute(steps, self, check(steps, text, self.dialect), _Steps(inference))

    def simplify(
        self: _M,
        *,
        exact: bool = False,
        cost: Literal["nodes", "bytes", "flops", "traffic"] = "nodes",
        max_growth: int | None = None,
        max_rounds: int = 16,
        skip: Collection[str] = (),
        fixed: Mapping[str, Sequence[int | None]] | None = None,
    ) -> _M:
        """Return a model with fewer operators that computes the same; this one stays unchanged.

        Parameters, results and errors are those of `passlib.simplify`.
        """
        options: dict[str, Any] = {"cost": cost, "max_growth": max_growth, "max_rounds": max_rounds}
        options.update(skip=tuple(skip), fixed=fixed)
        made: _M = pipelines()["clean" if exact else "simplify"].run(self, options)
        return made


def _refuse_types(given: Mapping[str, Any]) -> None:
    """Refuse shapes and types of inputs next to pipelines that determine them by themselves."""
    names = [name for name, value in given.items() if value and isinstance(value, Mapping)]
    if names:
        raise UnsupportedError(
            f"simplify and clean infer shapes and types themselves, and would ignore {names[0]!r}; "
            "fixed={'data': (1, 3, 224, 224)} states the sizes of inputs of an ONNX model"
        )


class _Steps:
    """Runs steps on models."""

    def __init__(self, inference: Mapping[str, Any]) -> None:
        self._inference = inference

    def apply(self, step: Step, options: dict[str, Any], subject: _M) -> _M:
        named = find_pipeline(step.name)
        if named is not None:
            made: _M = named.run(subject, options)
            return made
        return subject.optimize_for(step.name, **self._inference, **options)

    def differs(self, before: OptimizedModel, after: OptimizedModel) -> bool:
        return (
            not before.symbol.graph.equals(after.symbol.graph)
            or weights_differ(before.args, after.args)
            or weights_differ(before.aux, after.aux)
        )
