"""How far the outputs of equal models differ by rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError
from passlib.graph.plain import WITH_GRAPHS
from passlib.model import Model
from passlib.workbench.parts import outputs_of

_RUNS: Final = ("inputs", "weights", "both", "both")
"""What the runs change: changes of both may cancel."""

_MOST_EXACT: Final = 1024
"""Smaller whole numbers and halves are not changed."""

_MOST_BYTES: Final = 1 << 30
"""Weights that take more are not copied."""


_HALVES: Final = {"10": ("float16", 2.0**-10), "16": ("bfloat16", 2.0**-7)}
"""Types of half precision by ONNX's numbers, and their relative spacing (IEEE 754; bfloat16 has 8
digits)."""


Run = Callable[[Model, Mapping[str, Any]], "list[Any]"]


class Rounding:
    """Measures rounding by runs with inputs and weights changed by one unit in the last place.

    A rewrite that reorders sums or folds weights changes the outputs about as much.
    """

    def __init__(self, model: Model, run: Run = outputs_of, unit: float | None = None) -> None:
        """Measure with changes by this share of each number (default: of its type)."""
        self._model = model
        self._run = run
        self._unit = unit
        self._models: list[Model] = []

    def outputs_of(self, inputs: Mapping[str, Any]) -> list[list[Any]]:
        """Return the outputs of each run; none of a run that fails."""
        if not self._models:
            self._models = [
                self._model if changed == "inputs" else self._perturbed(seed)
                for seed, changed in enumerate(_RUNS)
            ]
        found = []
        for seed, (changed, model) in enumerate(zip(_RUNS, self._models, strict=True)):
            fed = inputs if changed == "weights" else _perturbed(inputs, seed, self._unit)
            try:
                found.append(self._run(model, fed))
            except PasslibError:  # a changed constant is a size that no longer fits
                continue
        return found

    def _perturbed(self, seed: int) -> Model:
        weights = {**self._model.args, **self._model.aux}
        if sum(getattr(array, "nbytes", 0) for array in weights.values()) > _MOST_BYTES:
            return self._model
        args = _perturbed(self._model.args, seed, self._unit)
        aux = _perturbed(self._model.aux, seed, self._unit)
        return self._model.with_weights(args, aux)


def half_unit(model: Model) -> float | None:
    """Return the relative spacing of half precision, if a model has weights in it or casts to it.

    None for a model without.
    """
    names = dict(_HALVES.values())
    for array in (*model.args.values(), *model.aux.values()):
        unit = names.get(getattr(getattr(array, "dtype", None), "name", ""))
        if unit is not None:
            return unit
    pending = [model.symbol.graph]
    while pending:
        for _, op, attributes, _, nested in pending.pop().nodes_with({"Cast", *WITH_GRAPHS}):
            if op == "Cast" and attributes.get("to") in _HALVES:
                return _HALVES[attributes["to"]][1]
            pending += nested
    return None


def _perturbed(arrays: Mapping[str, Any], seed: int, unit: float | None) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    found = {}
    for name, value in arrays.items():
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        found[name] = value
        if kind == "f" and isinstance(value, np.ndarray):
            array = value.view(np.ndarray)
            signs = np.where(generator.integers(0, 2, array.shape), 1.0, -1.0)
            with np.errstate(all="ignore"):
                if unit is None:
                    moved = np.nextafter(array, (signs * np.inf).astype(array.dtype))
                else:
                    moved = array * (1 + signs * unit).astype(array.dtype)
                # A square of a negative number, for example, must not get another exponent, and a
                # half must not be rounded to the other side.
                fixed = (array * 2 == np.rint(array * 2)) & (np.abs(array) < _MOST_EXACT)
            fixed |= ~np.isfinite(array) | ~np.isfinite(moved)
            found[name] = np.where(fixed, array, moved).astype(array.dtype)
    return found
