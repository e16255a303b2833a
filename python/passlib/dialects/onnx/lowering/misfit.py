"""Weights that somebody put into a model and that do not fit its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from passlib.dialects.onnx.reading import document_of
from passlib.dialects.onnx.soundness import objection_to_types
from passlib.dialects.onnx.writing.assembly import assemble, assemble_for_file
from passlib.dialects.protocol import ModelData
from passlib.errors import PasslibError, listed
from passlib.lowering.types import TypeSpec


def misfit(model: ModelData) -> str:
    """Return what contradicts the graph in the weights of a model; empty if nothing.

    ONNX's strict inference decides, as when the model is saved: a weight may have another type
    than in the file, if the graph accepts it. What it has against the graph alone is not held
    against the weights.
    """
    arrays: dict[str, np.ndarray[Any, Any]] = {**model.args, **model.aux}
    graph, attributes = model.graph, model.attributes
    document = document_of(attributes)
    try:
        given = assemble_for_file(graph, attributes, document, arrays)
        if given is None:
            return ""
        found = objection_to_types(given.model, given.arrays)
        if not found:
            return ""
        before = {name: document.arrays.get(name, array) for name, array in arrays.items()}
        unknown = {name: TypeSpec(array.dtype, None) for name, array in before.items()}
        if objection_to_types(assemble(graph, attributes, document, {}, unknown).model, {}):
            return ""
    except PasslibError:
        return ""  # the graph has no form in ONNX, as saving and running report
    other = [
        f"{name!r} is {_type_of(array)}, in the file {_type_of(before[name])}"
        for name, array in arrays.items()
        if _type_of(array) != _type_of(before[name])
    ]
    return f"{listed(other, 3)}; {found}" if other else found


def _type_of(array: np.ndarray[Any, Any]) -> str:
    return f"{array.dtype} {tuple(array.shape)}"
