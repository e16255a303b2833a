"""Likely causes of inputs that do not fit a model, for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.dialects import Dialect
from passlib.errors import listed
from passlib.graph.plain import PlainGraph


def unknown_inputs(given: Mapping[str, Any], graph: PlainGraph, inputs: Sequence[str]) -> str:
    """Return the message for values under names that no variable has; empty if there are none."""
    others = given.keys() - set(inputs)
    unknown = sorted(str(name) for name in others - set(graph.list_inputs())) if others else []
    if not unknown:
        return ""
    return f"the model has no input {listed([repr(n) for n in unknown])}; its inputs are " + listed(
        inputs
    )


def hint(
    said: str,
    graph: _core.Graph,
    dialect: Dialect,
    feeds: Mapping[str, Any],
    missing: Sequence[str],
    weights: Sequence[Any],
) -> str:
    """Return the likely cause of a failed run: missing values, or NumPy's float64.

    Parameters
    ----------
    said : str
        The message of the failure; empty is returned if it states the cause already.
    graph : _core.Graph
    dialect : Dialect
    feeds : mapping of str to array
    missing : sequence of str
        Inputs without a value.
    weights : sequence of array
        Those of the model.
    """
    if missing:
        parameters = dialect.parameters_among(graph, set(missing)) if not weights else set()
        if parameters:
            return _without_weights(dialect, [n for n in missing if n in parameters])
        return "" if "is missing" in said else f"no value was given for {listed(missing)}"
    kinds = {name: getattr(value, "dtype", None) for name, value in feeds.items()}
    doubles = [name for name, dtype in kinds.items() if dtype == np.float64]
    if not doubles or ".astype(" in said or any(array.dtype == np.float64 for array in weights):
        return ""
    return (
        f"input {', '.join(doubles)} is float64, and no weight is: convert it with "
        ".astype('float32')"
    )


def _without_weights(dialect: Dialect, parameters: Sequence[str]) -> str:
    text = f"the model has no weights, and {listed(parameters, 3)} need them"
    if not dialect.weight_suffixes:
        return text
    return (
        f"{text}: there was no {dialect.weight_suffixes[0]} file next to the graph; name one with "
        "passlib.load(path, params='...')"
    )
