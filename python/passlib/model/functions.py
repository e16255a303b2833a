"""Bodies of the local functions of ONNX models, as models of their own."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import passlib._core as _core
from passlib.dialects.onnx.attributes import DOCUMENT
from passlib.dialects.onnx.nested import external_tensors, put_inside
from passlib.dialects.onnx.reading import Content, Document, Reference, document_of
from passlib.errors import PasslibError
from passlib.files.optional import require
from passlib.model.edits import Change
from passlib.model.graph import graph_of

REFERRING = "referring"
"""The domain of placeholders in the model of a body: an operator for each result, and one for each
operator with an attribute of the call. It ends with underscores where a function has it, too.
"""

M = TypeVar("M")


def with_functions(
    model: M,
    change: Change,
    *,
    falls: bool = False,
    passes_errors: bool = False,
) -> M:
    """Return an ONNX model whose local functions have other bodies; itself if nothing changes.

    Parameters
    ----------
    model : Model
    change : callable
        Gets a model whose graph is the body of a function that is called, and returns a model that
        computes the same, or None. The inputs have the types and dimensions that are the same at
        all calls.
    falls : bool
        Keep a new body only if it has fewer operators or bytes.
    passes_errors : bool
        Raise `GraphError` if a new body cannot be that of the function; by default the old one
        stays. Errors of ``change`` are always raised, with the name of the function.
    """
    like: Any = model
    data = like.data(whole=False)
    document = document_of(data.attributes)
    imports = json.loads(data.attributes["opset_import"])
    facts = _core.GraphFacts(document.file, data.graph, imports, dict(data.args))

    def changed(body: bytes, name: str) -> bytes | None:
        try:
            content = change(Content.of(body, document.folder) if document.has_external else body)
        except PasslibError as error:
            error.args = (f"local function {name!r}: {' '.join(error.args[:1])}", *error.args[1:])
            raise
        return _whole(content) if isinstance(content, Content) else content

    content = facts.with_functions(changed, falls, passes_errors)
    if content is None:
        return model
    file = _core.OnnxFile(content)
    new = Document(content, document.path, file, document.arrays, document.folder)
    attributes = {**data.attributes, DOCUMENT: Reference.to(new)}
    symbol = graph_of(data.graph, attributes, like.dialect)
    made: M = type(like).of_parts(symbol, like.args, like.aux, new)
    return made


def _whole(content: Content) -> bytes:
    """Return a model with its weights in it."""
    if not content.weights.arrays:
        return content
    onnx: Any = require("onnx", extra="run")
    proto = onnx.ModelProto.FromString(content)
    put_inside(external_tensors(proto), content.weights)
    whole: bytes = proto.SerializeToString()
    return whole
