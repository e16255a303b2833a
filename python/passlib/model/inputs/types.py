"""Shapes and element types of a model's inputs, as lowering requires them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passlib.arrays.given import as_shapes, as_types
from passlib.dialects import Dialect, ModelData
from passlib.dialects.inference import infer
from passlib.errors import InputError, listed
from passlib.lowering import Shape, TypeSpec
from passlib.model.graph import ModelGraph

_FLOAT32 = np.dtype(np.float32)


def input_types(
    symbol: ModelGraph,
    dialect: Dialect,
    data: ModelData,
    shapes: Mapping[str, Sequence[int | None]] | None,
    types: Mapping[str, Any] | None,
) -> dict[str, TypeSpec]:
    """Infer the types of all inputs whose shape is given, declared or follows from others.

    Parameters
    ----------
    symbol : ModelGraph
    dialect : Dialect
    data : ModelData
        The model.
    shapes, types : mapping of str to shape or dtype, optional
        Given by the caller. A given shape stays as open as it was given.

    Returns
    -------
    dict of str to TypeSpec
        By name of the variable.

    Raises
    ------
    TypeError
        Shapes or types are not mappings of these; the message shows the right form.
    InputError
        A name is not a variable.
    GraphError
        Shapes contradict each other.
    """
    weights = {**data.args, **data.aux}
    inputs = [name for name in dialect.data_inputs(data.graph) if name not in weights]
    hint = inputs[0] if inputs else ""
    given = as_shapes("shapes", shapes, hint)
    kinds = as_types("types", types, hint)
    unknown = sorted({*given, *kinds} - set(symbol.list_inputs()))
    if unknown:
        raise InputError(
            f"the model has no input {', '.join(map(repr, unknown))}; its inputs are "
            f"{listed(inputs)}"
        )
    declared = dialect.input_types(data)
    known_shapes = {n: spec.shape for n, spec in declared.items() if spec.shape is not None}
    known_types = {n: spec.dtype for n, spec in declared.items() if spec.dtype is not None}
    known_shapes |= {name: array.shape for name, array in weights.items()} | given
    known_types |= {name: array.dtype for name, array in weights.items()} | kinds
    inferred = infer(symbol, known_shapes, known_types)
    specs = {}
    for node, outputs in inferred.outputs.items():
        if not node.is_variable or (node.name in weights and node.name not in given):
            continue
        # Of dialects whose graphs state all types, nothing is inferred.
        found = known_shapes.get(node.name) if outputs[0].shape is None else outputs[0].shape
        shape = _stated(given.get(node.name), found)
        if shape is not None:
            dtype = outputs[0].dtype or known_types.get(node.name) or _FLOAT32
            specs[node.name] = TypeSpec(dtype, shape)
    return specs


def _stated(given: Shape | None, found: Shape | None) -> Shape | None:
    """Return the shape of an input: as given, where 0 and -1 may stand for what is not known."""
    if given is None or found is None or len(given) != len(found):
        return found if given is None else given
    return tuple(
        known if size is not None and size < 1 else size
        for size, known in zip(given, found, strict=True)
    )
