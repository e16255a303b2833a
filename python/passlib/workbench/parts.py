"""Models that are parts of other models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from passlib.errors import InputError
from passlib.graph.node import Entry
from passlib.model import Model
from passlib.model.graph import ModelGraph


def with_outputs(model: Model, entries: Sequence[Entry]) -> Model:
    """Return a model that computes other values of the same graph.

    Parameters
    ----------
    model : Model
    entries : sequence of Entry
        The values, of nodes of ``model.symbol``.
    """
    return of_symbol(model, model.symbol.with_entries(entries))


def of_symbol(
    model: Model,
    symbol: ModelGraph,
    args: Mapping[str, Any] | None = None,
    aux: Mapping[str, Any] | None = None,
) -> Model:
    """Return a model of another symbol with those weights of a model that it has variables for.

    Parameters
    ----------
    model : Model
    symbol : ModelGraph
    args, aux : mapping of str to array, optional
        Other weights than the model's.
    """
    known = set(symbol.list_inputs())
    kept = [
        {name: array for name, array in weights.items() if name in known}
        for weights in (model.args if args is None else args, model.aux if aux is None else aux)
    ]
    return Model.of_parts(symbol, kept[0], kept[1], model.data().template)


def outputs_of(model: Model, inputs: Mapping[str, Any]) -> list[Any]:
    """Compute the outputs in order, from those of some inputs that the model has.

    Raises
    ------
    InputError
        An input is missing.
    """
    names = model.inputs
    missing = [name for name in names if name not in inputs]
    while names and names[-1] in missing:
        # Trailing ones may be labels, which no output depends on.
        missing.remove(names.pop())
    if missing:
        raise InputError(f"no value was given for {', '.join(missing)}")
    outputs = model(*(inputs[name] for name in names))
    return outputs if isinstance(outputs, list) else [outputs]
