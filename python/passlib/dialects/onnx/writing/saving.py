"""Saving of ONNX models, in the form in which they were read as far as it still holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from passlib.dialects.onnx.document import Document, document_of
from passlib.dialects.onnx.soundness import MOST_KINDS, are_accepted, check_accepted
from passlib.dialects.onnx.writing import storage
from passlib.dialects.onnx.writing.assembly import as_in_file, assemble_for_file
from passlib.dialects.onnx.writing.options import Placement, converted
from passlib.dialects.protocol import ModelData


def save(
    path: Path, model: ModelData, placement: Placement | None, opset: int | None
) -> tuple[str, ...]:
    """Write a model and its external data as a whole, or not at all.

    Parameters
    ----------
    path : Path
    model : ModelData
    placement : Placement or None
        Where weights lie; None for where the model had them.
    opset : int or None
        The operator set to convert to.

    Returns
    -------
    tuple of str
        The files that were written.

    Raises
    ------
    GraphError, UnsupportedError
        ONNX's checker would refuse the file, or the model has no form as ONNX.
    """
    document = model.template
    if not isinstance(document, Document):
        document = document_of(model.attributes)
    params = _joined(model.args, model.aux)
    omitted = model.omitted
    assembled = assemble_for_file(model.graph, model.attributes, document, params, omitted)
    made = None
    if opset is not None:
        made = converted(assembled or as_in_file(document), opset, document.outline)
    if made is not None:
        assembled = made
    elif assembled is not None:
        writer = assembled.writer
        kinds = None if assembled.edited else writer.kinds(MOST_KINDS)
        if kinds is None or not are_accepted(kinds, writer.changed_outputs()):
            shown = assembled.model if assembled.edited else assembled.outline
            check_accepted(shown, assembled.held, document.outline)
    return storage.save(path, assembled, document, placement)


def _joined(args: Mapping[str, Any], aux: Mapping[str, Any]) -> dict[str, Any]:
    """Return all weights, not to be changed: without a copy if there are no states."""
    return args if isinstance(args, dict) and not aux else {**args, **aux}
