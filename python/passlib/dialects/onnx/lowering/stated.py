"""Types that a file states for all its values, where ONNX's checker says that they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.dialects.onnx.keys import ABSENT, ID
from passlib.dialects.onnx.reading import document_of
from passlib.dialects.onnx.soundness import MOST_KINDS, are_accepted
from passlib.dialects.onnx.tensors import ELEMENT_TYPES
from passlib.dialects.onnx.writing.assembly import assemble
from passlib.graph.plain import PlainGraph, whole
from passlib.lowering import Graph

_CODES: Final = {
    number: dtypes.CODES[name] for number, name in ELEMENT_TYPES.items() if name in dtypes.CODES
}
"""MXNet's numbers of element types by ONNX's."""


def stated_texts(
    graph: Graph, params: Mapping[str, np.ndarray[Any, Any]]
) -> list[tuple[str, str]] | None:
    """Return the types that the file states, if inference would find nothing else.

    Instead of the whole model, ONNX's checker and strict inference see a model of one node for
    each kind: operator, attributes, types of inputs and outputs.

    Parameters
    ----------
    graph : PlainGraph
    params : mapping of str to numpy.ndarray
        Weights by name.

    Returns
    -------
    list of (str, str) or None
        For each node the texts of ``__ext_shape__`` and ``__ext_dtype__``. None if a value has no
        stated type or an open size, if passes made new types doubtful, or weights are not those
        of the file; and if a stated type is wrong.
    """
    plain: PlainGraph = whole(graph)
    document = document_of(plain.attributes)
    variables = plain.graph.variables_with(ID)
    if any(not key and name != ABSENT for name, key in variables):
        return None
    if not _core.same_arrays(dict(params), document.arrays):
        return None
    writer = assemble(plain.graph, plain.attributes, document, {}, renew=False).writer
    found = None if writer.doubtful else writer.stated_texts(_CODES, MOST_KINDS)
    if found is None:
        return None
    texts, kinds = found
    return texts if are_accepted(kinds, ()) else None
