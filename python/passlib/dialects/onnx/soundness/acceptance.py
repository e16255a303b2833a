"""Whether ONNX accepts what passes made of a model, as it accepted the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, empty, external_tensors, graphs_within
from passlib.dialects.onnx.soundness.corrected import questionable
from passlib.dialects.onnx.soundness.inference import (
    disputes,
    open_sizes,
    unsafe_to_infer,
    without_disputes,
    without_weights,
)
from passlib.dialects.onnx.soundness.model import check_model, is_defined, versions_of
from passlib.errors import GraphError, UnsupportedError
from passlib.files.optional import require

_OWN_SETS: Final = frozenset(("", "ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training"))
"""Domains in which ONNX's checker knows all operators."""


def check_accepted(model: Any, arrays: Mapping[int, Any], original: Callable[[], Any]) -> None:
    """Refuse a model that ONNX's checker refuses, its strict inference included.

    Errors that the checker finds in the file itself do not count. ``arrays``: elements
    of initializers of its main graph that are not in the message, by number. ``original``: returns
    the model of the file. Raises `GraphError` if a node, or the model, is not as ONNX requires;
    `UnsupportedError` if ONNX has no such operator, or the type of an output is not known.
    """
    try:
        check_model(model)
    except GraphError:
        if _is_sound(original()):
            raise
        return  # ONNX's code must not get it
    _check_operators(model, original)
    shown = without_weights(model, arrays)
    types = _objection(_infer_strictly, shown)
    _check_outputs(model, original, types)
    for check, found in ((_infer_strictly, types), (_check, _objection(_check, shown))):
        if found and not _objection(check, without_weights(original(), {})):
            raise GraphError(
                "the model cannot be written, because ONNX's checker, which accepts the file that "
                f"it was loaded from, refuses what the passes made of it: {found}"
            )


def is_accepted(model: Any) -> bool:
    """Whether ONNX's checker accepts a model, and ONNX's own sets have all its operators.

    ``model``: loses its negative sizes.
    """
    if not _is_sound(model) or _undefined(model):
        return False
    open_sizes(model)
    if _objection(_infer_strictly, model) or _objection(_check, model):
        return False
    return not (questionable([model.graph]) and disputes(model))


def objection_to_types(model: Any, arrays: Mapping[int, Any]) -> str:
    """Return the error of ONNX's strict inference on a model; empty if there is none.

    ``arrays``: as for `check_accepted`.
    """
    if not _is_sound(model):
        return ""  # ONNX's code must not get it
    return _objection(_infer_strictly, without_weights(model, arrays))


def lacks_type(value: Any) -> bool:
    """Whether ONNX's checker misses something in the type of an output."""
    return bool(_missing(value.type))


def loses_captured_casts(model: Any) -> bool:
    """Whether ONNX Runtime may lose a value that a nested graph captures.

    ONNX Runtime 1.32 removes casts there and back, also with all optimizations off. If no node
    computes what they begin with, nested graphs that capture their result lack it. It inlines
    functions before.
    """
    if model.functions:
        inliner: Any = require("onnx.inliner", extra="onnx")
        with suppress(RuntimeError, ValueError):
            model = inliner.inline_local_functions(model)
    for graph in graphs_within(model.graph):
        casts = {
            node.output[0]: node.input[0]
            for node in graph.node
            if node.op_type == "Cast" and not schema.plain(node.domain)
        }
        made = {name for node in graph.node for name in node.output}
        pairs = {name for name, source in casts.items() if source in casts}
        if not pairs:
            continue
        inside = graphs_within(
            *(each.g for node in graph.node for each in node.attribute if each.HasField("g"))
        )
        captured = {
            name
            for nested in inside
            for names in (*(node.input for node in nested.node), [v.name for v in nested.output])
            for name in names
        }
        for name in pairs & captured:
            source = name
            while source in casts:
                source = casts[source]
            if source not in made:
                return True
    return False


def _is_sound(model: Any) -> bool:
    try:
        check_model(model)
    except GraphError:
        return False
    return True


def _check_operators(model: Any, original: Callable[[], Any]) -> None:
    """Refuse operators that ONNX's own sets do not have, unless the file has them."""
    new = _undefined(model)
    if not new:
        return
    before = _undefined(original())
    for (domain, op, version), title in new.items():
        if (domain, op, version) not in before:
            raise UnsupportedError(
                f"{title}: ONNX's operator set {domain or 'ai.onnx'} {version} has no "
                f"operator {op!r}; load the library that has it, or name its domain in the node's "
                "attribute __domain__"
            )


def _undefined(model: Any) -> dict[tuple[str, str, int], str]:
    """Return the nodes whose operators ONNX's sets do not have: names by operator."""
    functions = {(f.domain, f.name) for f in model.functions}
    found = {}
    for body in (model.graph, *model.functions):
        imports = versions_of((model if body is model.graph else body).opset_import) or {"": 1}
        for graph in graphs_within(body):
            for node in graph.node:
                domain = schema.plain(node.domain)
                key = (domain, str(node.op_type), imports.get(domain, 0))
                known = (node.domain, node.op_type) in functions or is_defined(*key)
                if domain in _OWN_SETS and not known:
                    value = next(iter(node.output), "")
                    found[key] = f"node {node.name!r}" if node.name else f"the node of {value!r}"
    return found


def _objection(check: Callable[[Any], object], model: Any) -> str:
    """Return the error of a check of ONNX on a model; empty if there is none."""
    onnx: Any = require("onnx", extra="onnx")
    checker: Any = require("onnx.checker", extra="onnx")
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        check(model)
    except (checker.ValidationError, inference.InferenceError, RuntimeError, ValueError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    except MemoryError:
        return f"onnx {onnx.__version__} needs more memory for its check than there is"
    return ""


def _infer_strictly(model: Any) -> None:
    if unsafe_to_infer(model) is not None:
        return  # it would take the memory, or end the process
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        inference.infer_shapes(model, check_type=True, strict_mode=True)
    except inference.InferenceError:
        apart = _without_hidden_names(model)
        right = without_disputes(apart or model) or apart
        if right is None or unsafe_to_infer(right) is not None:
            raise
        inference.infer_shapes(right, check_type=True, strict_mode=True)


def _check(model: Any) -> None:
    checker: Any = require("onnx.checker", extra="onnx")
    if any(external_tensors(model)):  # whose files the checker would look for
        model = copy_of(model)
        for tensor in list(external_tensors(model)):
            empty(tensor)
    checker.check_model(model)


def _check_outputs(model: Any, original: Callable[[], Any], cause: str) -> None:
    """Refuse an output whose type or rank is not stated, unless the file has it so."""
    incomplete = [value for value in model.graph.output if _missing(value.type)]
    before = {value.name: value for value in original().graph.output} if incomplete else {}
    for value in incomplete:
        if value.name in before and before[value.name].type == value.type:
            continue
        why = cause or "ONNX's inference does not know that of the node that computes it"
        raise UnsupportedError(
            f"output {value.name!r} cannot be written: its {_missing(value.type)} is not known "
            f"({why}); let the pass keep the output, or follow the node by an operator that fixes "
            "the type, such as Cast or Reshape"
        )


def _missing(kind: Any) -> str:
    """Return what ONNX's checker misses in the type of an output; empty if nothing.

    It wants the number of dimensions of tensors, but not of those in sequences, maps and optional
    values.
    """
    outer = kind
    while True:
        field = kind.WhichOneof("value")
        if field is None:
            return "type"
        inner = getattr(kind, field)
        if field == "map_type":
            kind = inner.value_type
        elif field in ("sequence_type", "optional_type"):
            kind = inner.elem_type
        elif field in ("tensor_type", "sparse_tensor_type"):
            if not inner.elem_type:
                return "element type"
            if kind is outer and not inner.HasField("shape"):
                return "number of dimensions"
            return ""
        else:
            return ""


MOST_KINDS: Final = 100
"""The number of kinds whose checks take as long as that of a model of some thousand nodes."""

_SMALL_KIND: Final = 1 << 14
"""Kinds of fewer bytes are remembered."""


def are_accepted(kinds: Iterable[bytes], outputs: Iterable[bytes]) -> bool:
    """Whether ONNX's checker accepts models of one node each, and the outputs are described.

    ``kinds``: each an onnx.ModelProto. ``outputs``: those of the model that the file does not
    describe so, each an onnx.ValueInfoProto.
    """
    onnx: Any = require("onnx", extra="onnx")
    if any(lacks_type(onnx.ValueInfoProto.FromString(output)) for output in outputs):
        return False
    return all(_checked(kind) if len(kind) < _SMALL_KIND else _check_kind(kind) for kind in kinds)


def _check_kind(kind: bytes) -> bool:
    return is_accepted(require("onnx", extra="onnx").ModelProto.FromString(kind))


_checked = lru_cache(maxsize=1024)(_check_kind)


def _without_hidden_names(model: Any) -> Any | None:
    """Copy a model so that no nested graph hides a name around it; None if none does.

    ONNX's inference takes such names for one value.
    """
    made = copy_of(model)
    pending: list[tuple[Any, frozenset[str], dict[str, str]]] = [(made.graph, frozenset(), {})]
    hidden = 0
    while pending:
        graph, around, names = pending.pop()
        inner = {value.name for value in (*graph.input, *graph.initializer)}
        inner.update(name for node in graph.node for name in node.output if name)
        names = dict(names)
        for name in inner:
            names.pop(name, None)
            if name in around:
                hidden += 1
                names[name] = f"{name}__hidden_{hidden}"
        for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            for places in (node.input, node.output):
                places[:] = [names.get(name, name) for name in places]
            pending.extend(
                (attribute.g, around | inner, names)
                for attribute in node.attribute
                if attribute.HasField("g")
            )
    return made if hidden else None
