"""Element types and shapes of what a model is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passlib import dialects
from passlib.lowering import TypeSpec
from passlib.model.inputs import input_types
from passlib.model.model import Model


def input_specs(
    model: Model, shapes: Mapping[str, Sequence[int | None]] | None = None
) -> dict[str, TypeSpec]:
    """Return the types of those inputs whose shape is given, declared or follows from others.

    Parameters
    ----------
    model : Model
    shapes : mapping of str to shape, optional
        Given by the caller; ``None`` leaves a size open.

    Returns
    -------
    dict of str to TypeSpec
        By the names of `Model.inputs`, in their order.

    Raises
    ------
    GraphError
        A name is no input, or shapes contradict each other.
    """
    family = dialects.find(model.dialect)
    specs = input_types(model.symbol, family, model.data(), shapes, None)
    return {name: specs[name] for name in model.inputs if name in specs}
