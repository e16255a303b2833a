"""ONNX models in another version of ONNX's operator set, by ONNX's own converter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.messages import copy_of, graphs_within
from passlib.dialects.onnx.soundness import (
    check_accepted,
    check_model,
    unsafe_to_infer,
    without_weights,
)
from passlib.dialects.onnx.soundness.model import versions_of
from passlib.dialects.onnx.writing.assembly import Assembled
from passlib.dialects.onnx.writing.options.meaning import Conversion, repair
from passlib.errors import GraphError, UnsupportedError, listed
from passlib.files.optional import require

_OLDEST_FORMAT: Final = 3
"""The oldest IR version that ONNX's converter reads."""


def converted(assembled: Assembled, opset: int, original: Any) -> Assembled | None:
    """Convert a model to another version of ONNX's own operator set, and check the result.

    Parameters
    ----------
    assembled : Assembled
        Is consumed.
    opset : int
    original : onnx.ModelProto
        Of the file that the model was loaded from.

    Returns
    -------
    Assembled or None
        The same weights, types of values and annotations; other nodes where operators differ.
        None for a model that has the version.

    Raises
    ------
    TypeError
        The version is no whole number.
    UnsupportedError
        The package onnx does not know the version, or its converter cannot convert the model;
        the message names the node or the part of the model.
    GraphError
        A node does not have the form that its operator requires.
    """
    model = assembled.model
    _check_version(opset)
    present = versions_of(model.opset_import).get("")
    if present is None:
        raise UnsupportedError(
            "the model imports no version of ONNX's own operator set; save it without opset"
        )
    if present == opset:
        return None
    _check_convertible(model)
    check_model(model)
    _check_inferable(model)
    conversion = Conversion(model, present, opset)
    conversion.check()
    inference: Any = require("onnx.shape_inference", extra="onnx")
    given = without_weights(model, assembled.arrays)
    try:
        result = require("onnx.version_converter", extra="onnx").convert_version(given, opset)
    except (inference.InferenceError, RuntimeError, ValueError, IndexError) as error:
        raise UnsupportedError(_reason(str(error), model, present, opset)) from error
    except MemoryError as error:
        raise GraphError("converting this model needs more memory than there is") from error
    repair(conversion, result)
    made = _joined(assembled, result)
    try:
        check_accepted(made.model, made.held, original)
    except GraphError as error:
        check_accepted(given, {}, original)  # was it a pass?
        found = str(error).rpartition("made of it: ")[2]
        raise UnsupportedError(_reason(found, given, present, opset)) from error
    return made


def _check_version(opset: Any) -> None:
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise TypeError(f"opset is {opset!r}, but must be a whole number, such as 17")
    newest = int(require("onnx.defs", extra="onnx").onnx_opset_version())
    if not 1 <= opset <= newest:
        raise UnsupportedError(f"opset is {opset}; it can be 1 to {newest}")


def _check_convertible(model: Any) -> None:
    """Refuse what ONNX's converter would lose without a word."""
    hint = "save it without opset"
    if model.ir_version < _OLDEST_FORMAT:
        raise UnsupportedError(
            f"ONNX's converter does not read IR version {model.ir_version}; {hint}"
        )
    if model.functions:
        name = model.functions[0].name
        raise UnsupportedError(f"ONNX's converter has no functions, such as {name!r}; {hint}")
    if model.training_info:
        raise UnsupportedError(f"ONNX's converter has no training information; {hint}")
    for graph in graphs_within(model.graph):
        for sparse in graph.sparse_initializer:
            raise UnsupportedError(
                f"ONNX's converter has no sparse initializers, such as {sparse.values.name!r}; "
                f"{hint}"
            )


def _check_inferable(model: Any) -> None:
    node = unsafe_to_infer(model)
    if node is not None:
        raise UnsupportedError(
            f"node {_name(node)!r} ({node.op_type}): ONNX's converter needs the types of its "
            "inputs, which are not known, or have too many axes; state them as value_info, or "
            "save the model without opset"
        )


def _reason(text: str, model: Any, present: int, opset: int) -> str:
    """Return the message of a failed conversion, with the node, or those that it can be about."""
    text = text.rpartition("failed: ")[2].strip().partition("\n")[0]
    named = re.search(r"(?:\bfor|\bof|operator) '?([A-Z]\w*)", text)
    nodes = [node for graph in graphs_within(model.graph) for node in graph.node]
    about = [node for node in nodes if named and node.op_type == named[1]][:1]
    if not about:
        about = [node for node in nodes if _differs(node, present, opset)]
    titles = [f"{_name(node)!r} ({node.op_type})" for node in about]
    where = f"node {titles[0]}: " if len(titles) == 1 else ""
    others = f"; its operators that differ are those of {listed(titles, 4)}" if titles[1:] else ""
    return (
        f"{where}ONNX's converter cannot take version {present} of ONNX's operator set to version "
        f"{opset}: {text}{others}"
    )


def _differs(node: Any, present: int, opset: int) -> bool:
    """Whether the operator of a node is another one in two versions of ONNX's operator set."""
    defs: Any = require("onnx.defs", extra="onnx")
    if schema.plain(node.domain):
        return False
    try:
        found = {defs.get_schema(node.op_type, v).since_version for v in (present, opset)}
    except defs.SchemaError:
        return True
    return len(found) > 1


def _name(node: Any) -> str:
    return str(node.name or next(iter(node.output), ""))


def _joined(assembled: Assembled, result: Any) -> Assembled:
    """Put the converted nodes into the model, whose other parts the converter may have changed."""
    assembled.edited = True
    model = assembled.model
    stated = {value.name for graph in graphs_within(model.graph) for value in graph.value_info}
    for graph in graphs_within(result.graph):
        # The converter states types that it inferred, some of them wrongly.
        kept = [copy_of(value) for value in graph.value_info if value.name in stated]
        del graph.value_info[:]
        graph.value_info.extend(kept)
    _join_initializers(assembled, result.graph)
    del model.graph.node[:]
    model.graph.node.extend(result.graph.node)
    values = _values(result.graph)
    types = [copy_of(value) for value in model.graph.value_info if value.name in values]
    del model.graph.value_info[:]
    model.graph.value_info.extend(types)
    for entry in model.opset_import:
        if not schema.plain(entry.domain):
            entry.version = versions_of(result.opset_import)[""]
    helper: Any = require("onnx.helper", extra="onnx")
    least = helper.find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = max(model.ir_version, least)
    return assembled


def _join_initializers(assembled: Assembled, graph: Any) -> None:
    """Remove the initializers that the converter made attributes of, and add its new ones."""
    own = assembled.model.graph.initializer
    before = {tensor.name for tensor in own}
    left = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
    kept = [number for number, tensor in enumerate(own) if tensor.name in left]
    tensors = [copy_of(own[number]) for number in kept]
    tensors += [copy_of(tensor) for tensor in graph.initializer if tensor.name not in before]
    place = {old: new for new, old in enumerate(kept)}
    arrays, external = assembled.arrays, assembled.external
    assembled.arrays = {place[n]: array for n, array in arrays.items() if n in place}
    assembled.external = {place[n]: changed for n, changed in external.items() if n in place}
    del own[:]
    own.extend(tensors)


def _values(graph: Any) -> set[str]:
    outputs: Iterable[str] = (name for node in graph.node for name in node.output)
    named = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    return named.union(outputs)
