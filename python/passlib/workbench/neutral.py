"""Takes out of an ONNX model what its file tells of where it came from, such as names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from passlib.dialects.onnx import schema
from passlib.dialects.onnx.nested import copy_of, graphs_within, refill, sizes_of
from passlib.files.optional import require
from passlib.workbench.helper_calls import array_of, is_keyword, is_plain_type, kind_of

_PUBLIC: Final = ("", "com.microsoft")


@dataclass(frozen=True)
class Level:
    """The parts of a file that a neutral model keeps."""

    names: bool = False
    types: bool = False
    metadata: bool = False


LEVELS: Final = (
    Level(), Level(types=True), Level(names=True), Level(names=True, types=True),
    Level(names=True, types=True, metadata=True),
)  # fmt: skip


@dataclass
class Names:
    """New names of values and sizes, the same in several models."""

    values: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, str] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    functions: dict[tuple[str, str], str] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)

    def value(self, name: str, letter: str = "v") -> str:
        """Return the new name of a value, the same in each call."""
        if name and name not in self.values:
            self.values[name] = f"{letter}{self._counts[letter]}"
            self._counts[letter] += 1
        return self.values.get(name, "")


def neutral(models: Sequence[Any], level: Level) -> tuple[list[Any], Mapping[str, str]]:
    """Return models in the form that calls of onnx.helper make, and the new names of values.

    Documentation, training, devices and quantization annotations are dropped in any case.
    """
    made = [copy_of(model) for model in models]
    names = Names()
    for model in made:
        _drop(model, level)
        if not level.names:
            _rename(model, names)
        _canonicalize(model)
    return made, names.values


def _drop(model: Any, level: Level) -> None:
    dropped = ["doc_string", "training_info", "configuration"]
    if not level.metadata:
        dropped += ["producer_name", "producer_version", "domain", "model_version"]
    _clear(model, dropped, level)
    for body in _bodies(model):
        _clear(body, ["doc_string", "quantization_annotation"], level)
        if not level.types:
            _clear(body, ["value_info"], level)
        for node in body.node:
            _clear(node, ["doc_string", "device_configurations"], level)
        values = [*body.value_info]
        if hasattr(body, "initializer"):
            values += [*body.input, *body.output]
            for tensor in body.initializer:
                _clear(tensor, [], level)
        for value in values:
            _clear(value, ["doc_string"], level)


def _clear(message: Any, fields: Sequence[str], level: Level) -> None:
    known = message.DESCRIPTOR.fields_by_name
    for name in [*fields, *([] if level.metadata else ["metadata_props"])]:
        if name in known:
            message.ClearField(name)


def _rename(model: Any, names: Names) -> None:
    _collect(model, names)
    model.graph.name = "graph"
    for body in _bodies(model):
        is_graph = hasattr(body, "initializer")
        if is_graph:
            body.name = "graph" if body is model.graph else body.name and "body"
            for tensor in body.initializer:
                tensor.name = names.value(tensor.name)
            for sparse in body.sparse_initializer:
                sparse.values.name = names.value(sparse.values.name)
                sparse.indices.name = ""
        for value in [*body.value_info, *([*body.input, *body.output] if is_graph else [])]:
            value.name = names.value(value.name)
            for dim in sizes_of(value.type):
                if dim.dim_param:
                    new = f"N{len(names.sizes)}"
                    dim.dim_param = names.sizes.setdefault(dim.dim_param, new)
        places = [] if is_graph else [body.input, body.output]
        for node in body.node:
            node.name = ""
            places += [node.input, node.output]
            key = schema.plain(node.domain), node.op_type
            if key in names.functions:
                node.domain, node.op_type = names.domains[key[0]], names.functions[key]
        for place in places:
            place[:] = [names.value(name) for name in place]
    for function in model.functions:
        key = schema.plain(function.domain), function.name
        if key in names.functions:
            function.domain, function.name = names.domains[key[0]], names.functions[key]
    for holder in (model, *model.functions):
        for opset in holder.opset_import:
            opset.domain = names.domains.get(schema.plain(opset.domain), opset.domain)


def _collect(model: Any, names: Names) -> None:
    """Choose new names: of the inputs, the weights and the outputs of the main graph first."""
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    for letter, values in (
        ("x", [value.name for value in graph.input if value.name not in weights]),
        ("w", [tensor.name for tensor in graph.initializer]),
        ("y", [value.name for value in graph.output]),
    ):
        for name in values:
            names.value(name, letter)
    own = {(schema.plain(each.domain), each.name) for each in model.functions}
    used = {
        (schema.plain(node.domain), node.op_type) for body in _bodies(model) for node in body.node
    }
    others = {domain for domain, _ in used - own}
    for domain, name in sorted(own):
        if domain not in _PUBLIC and domain not in others:
            names.domains.setdefault(domain, f"local{len(names.domains)}")
            names.functions.setdefault((domain, name), f"F{len(names.functions)}")


def _bodies(model: Any) -> Iterator[Any]:
    return graphs_within(model.graph, *model.functions)


def _canonicalize(model: Any) -> None:
    """Give attributes the order, and tensors the form, in which onnx.helper makes them."""
    used = {schema.plain(each.domain) for body in _bodies(model) for each in body.node}
    for holder in (model, *model.functions):
        kept = [each for each in holder.opset_import if schema.plain(each.domain) in {"", *used}]
        refill(holder.opset_import, kept)
    for body in _bodies(model):
        for node in body.node:
            attributes = sorted(
                (copy_of(each) for each in node.attribute),
                key=lambda each: (not is_keyword(each), each.name if is_keyword(each) else ""),
            )
            for attribute in attributes:
                attribute.type = getattr(type(attribute), kind_of(attribute))
                attribute.ClearField("doc_string")
            del node.attribute[:]
            node.attribute.extend(attributes)
            for name in ("name", "domain", "overload"):
                if not getattr(node, name):
                    node.ClearField(name)
    for tensor in tensors_of(model):
        _with_plain_content(tensor)


def tensors_of(model: Any) -> Iterator[Any]:
    """Iterate over the tensors of a model, in the order of the file."""
    for body in _bodies(model):
        yield from getattr(body, "initializer", ())
        for sparse in getattr(body, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        attributes = [each for node in body.node for each in node.attribute]
        for attribute in [*attributes, *getattr(body, "attribute_proto", ())]:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            several = list(attribute.sparse_tensors)
            single = [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []
            for sparse in (*single, *several):
                yield from (sparse.values, sparse.indices)


def _with_plain_content(tensor: Any) -> None:
    numpy_helper = require("onnx.numpy_helper", extra="onnx")
    made = type(tensor)(name=tensor.name)
    made.metadata_props.extend(tensor.metadata_props)
    if is_plain_type(tensor.data_type):
        filled = numpy_helper.from_array(array_of(tensor))
        made.MergeFrom(filled)
    else:
        made.data_type = tensor.data_type
        made.dims.extend(tensor.dims)
        made.raw_data = raw_content(tensor)
    tensor.CopyFrom(made)


def raw_content(tensor: Any) -> bytes:
    """Return the elements of a tensor whose type NumPy lacks, as files pack them."""
    if tensor.raw_data:
        return bytes(tensor.raw_data)
    numpy_helper = require("onnx.numpy_helper", extra="onnx")
    return bytes(numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data)
