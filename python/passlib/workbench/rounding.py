"""How far the outputs of equal models differ by rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from passlib.errors import PasslibError
from passlib.model import Model
from passlib.workbench.parts import outputs_of

_RUNS: Final = ("inputs", "weights", "both", "both")
"""What the runs change: changes of both may cancel."""

_MOST_EXACT: Final = 1024
"""Smaller whole numbers are not changed."""

_MOST_BYTES: Final = 1 << 30
"""Weights that take more are not copied."""


Run = Callable[[Model, Mapping[str, Any]], "list[Any]"]


class Rounding:
    """Measures rounding by runs with inputs and weights changed by one unit in the last place.

    A rewrite that reorders sums or folds weights changes the outputs about as much.
    """

    def __init__(self, model: Model, run: Run = outputs_of) -> None:
        self._model = model
        self._run = run
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
            fed = inputs if changed == "weights" else _perturbed(inputs, seed)
            try:
                found.append(self._run(model, fed))
            except PasslibError:  # a changed constant is a size that no longer fits
                continue
        return found

    def _perturbed(self, seed: int) -> Model:
        weights = {**self._model.args, **self._model.aux}
        if sum(getattr(array, "nbytes", 0) for array in weights.values()) > _MOST_BYTES:
            return self._model
        args, aux = _perturbed(self._model.args, seed), _perturbed(self._model.aux, seed)
        return self._model.with_weights(args, aux)


def _perturbed(arrays: Mapping[str, Any], seed: int) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    found = {}
    for name, value in arrays.items():
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        found[name] = value
        if kind == "f" and isinstance(value, np.ndarray):
            array = value.view(np.ndarray)
            towards = np.where(generator.integers(0, 2, array.shape), np.inf, -np.inf)
            with np.errstate(all="ignore"):
                moved = np.nextafter(array, towards.astype(array.dtype))
            # A square of a negative number, for example, must not get another exponent.
            with np.errstate(all="ignore"):
                fixed = (array == np.rint(array)) & (np.abs(array) < _MOST_EXACT)
            fixed |= ~np.isfinite(array) | ~np.isfinite(moved)
            found[name] = np.where(fixed, array, moved).astype(array.dtype)
    return found
