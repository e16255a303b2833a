"""Two ONNX models as one: outputs of the first are inputs of the second."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from passlib.arrays.dtypes import as_mapping
from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.calls import values_of
from passlib.dialects.onnx.lowering.types import fit, spec_of
from passlib.dialects.onnx.nested import graphs_within, rename_values, sealed, sizes_of
from passlib.dialects.onnx.reading import Content
from passlib.errors import GraphError, UnsupportedError, did_you_mean, listed
from passlib.files.optional import require
from passlib.graph.names import NameSource
from passlib.model.appearance import described_type
from passlib.model.edits import content_of, of_content
from passlib.model.loading import AnyModel, as_model
from passlib.model.model import Model


def merge(
    first: AnyModel, second: AnyModel, connect: Mapping[str, str] | None = None, *, prefix: str = ""
) -> Model:
    """Return one ONNX model of two: outputs of the first are inputs of the second.

    Parameters
    ----------
    first, second : Model or whatever `passlib.load` reads
        ONNX models of the same operator sets. They stay unchanged.
    connect : mapping of str to str, optional
        Inputs of the second model by outputs of the first. By default those of equal names, or the
        only output and the only input.
    prefix : str
        Put before the names of all values and nodes of the second model, but not before those of
        ``connect``. An open size of the second model has the name of the one that a connection
        ties it to; others get a new name if the first model has one of their name.

    Returns
    -------
    Model
        Its inputs are those of the first model, then those of the second that are not connected.
        Its outputs are those of the first that are not connected, then those of the second.

    Raises
    ------
    GraphError
        A name is no output or input, types or shapes do not fit, operator sets differ, or both
        models have values of one name.
    UnsupportedError
        A model is of another dialect, or trains.

    Examples
    --------
    >>> import onnx.parser, passlib as pl
    >>> head = '<ir_version: 8, opset_import: ["" : 17]> g '
    >>> first = onnx.parser.parse_model(head + "(float[2] x) => (float[2] y) { y = Relu(x) }")
    >>> second = onnx.parser.parse_model(head + "(float[2] y) => (float[2] z) { z = Neg(y) }")
    >>> whole = pl.merge(first, second)
    >>> whole.inputs, whole.outputs
    (['x'], ['z'])
    """
    models = [as_model(first), as_model(second)]
    contents = [_content(model) for model in models]
    before, after = (_message(content) for content in contents)
    pairs = _pairs(before.graph, after.graph, connect)
    _check_versions(before, after)
    _check_types(before.graph, after.graph, pairs)
    _rename_sizes(before.graph, after.graph, pairs)
    names = {target: source for source, target in pairs.items()}
    present = set(values_of(before.graph)) - {""}
    own = set(values_of(after.graph)) - {""}
    if prefix:
        names = {name: prefix + name for name in own} | names
    twice = [
        name for name in own if names.get(name, name) in present and name not in pairs.values()
    ]
    if twice:
        shown = listed([repr(name) for name in sorted(twice)], 4)
        raise GraphError(f"both models have values named {shown}; give a prefix for the second")
    _rename(after.graph, names, prefix, NameSource({node.name for node in before.graph.node}))
    connected = set(pairs)
    outputs = [value for value in before.graph.output if value.name not in connected]
    # A value that is no output any more may still state its type.
    before.graph.value_info.extend(v for v in before.graph.output if v.name in connected)
    del before.graph.output[:]
    before.graph.output.extend(outputs)
    inputs = [value for value in after.graph.input if value.name not in connected]
    del after.graph.input[:]
    after.graph.input.extend(inputs)
    _append(before, after)
    return of_content(models[0], sealed(before, *(content.weights for content in contents)))


def _content(model: Model) -> Content:
    if model.dialect != "onnx":
        raise UnsupportedError(
            f"only ONNX models are merged, and one is of {model.dialect}; convert it with to_onnx"
        )
    return content_of(model)


def _message(content: Content) -> Any:
    message = require("onnx", extra="onnx").ModelProto.FromString(content)
    if message.training_info:
        raise UnsupportedError("a model with training information cannot be merged")
    return message


def _pairs(before: Any, after: Any, connect: Mapping[str, str] | None) -> dict[str, str]:
    """Return the inputs of the second model by outputs of the first."""
    outputs = [value.name for value in before.output]
    constants = {tensor.name for tensor in after.initializer}
    inputs = [value.name for value in after.input if value.name not in constants]
    if connect is None:
        pairs = {name: name for name in outputs if name in inputs}
        if not pairs and len(outputs) == len(inputs) == 1:
            pairs = {outputs[0]: inputs[0]}
        if not pairs:
            raise GraphError(
                f"no output of the first model has the name of an input of the second; connect "
                f"some of the outputs {listed(outputs, 4)} to the inputs {listed(inputs, 4)}"
            )
        return pairs
    pairs = dict(as_mapping("connect", connect, "input"))
    for source, target in pairs.items():
        _require("first", "output", source, outputs)
        _require("second", "input", target, inputs)
    if len(set(pairs.values())) < len(pairs):
        raise GraphError("connect names an input of the second model more than once")
    return pairs


def _require(which: str, what: str, name: str, known: list[str]) -> None:
    if name not in known:
        hint = did_you_mean(name, known) or f"; its {what}s are {listed(known, 4)}"
        raise GraphError(f"the {which} model has no {what} {name!r}{hint}")


def _check_versions(before: Any, after: Any) -> None:
    versions = {each.domain: each.version for each in before.opset_import}
    for each in after.opset_import:
        other = versions.get(each.domain, each.version)
        if other != each.version:
            raise GraphError(
                f"the models have versions {other} and {each.version} of the operators of domain "
                f"{each.domain or 'ai.onnx'}; convert one of them: passlib convert --opset"
            )
    if before.ir_version != after.ir_version and before.ir_version < INPUTS_ALSO:
        raise GraphError(
            f"the models have IR versions {before.ir_version} and {after.ir_version}, where "
            "initializers differ"
        )


def _check_types(before: Any, after: Any, pairs: Mapping[str, str]) -> None:
    """Refuse a connection of values whose stated types contradict each other."""
    made = {value.name: spec_of(value.type) for value in before.output}
    read = {value.name: spec_of(value.type) for value in after.input}
    for source, target in pairs.items():
        left, right = made[source], read[target]
        types = {spec.dtype for spec in (left, right) if spec.dtype is not None}
        if len(types) > 1 or not fit(left.shape, right.shape):
            one, two = described_type(left), described_type(right)
            raise GraphError(f"output {source!r} is {one}, and input {target!r} {two}")


def _sizes(graph: Any) -> Iterator[Any]:
    """Iterate over all sizes that a graph and those nested in it state."""
    for inner in graphs_within(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            yield from sizes_of(value.type)


def _rename_sizes(before: Any, after: Any, pairs: Mapping[str, str]) -> None:
    """Give open sizes of the second graph the names that they have in the first one.

    Connected values tie them. Other sizes of one name are of two models, and need not be equal.
    """
    made = {value.name: list(sizes_of(value.type)) for value in before.output}
    read = {value.name: list(sizes_of(value.type)) for value in after.input}
    tied: dict[str, Any] = {}
    for source, target in pairs.items():
        for old, new in zip(made[source], read[target], strict=False):
            if new.dim_param and (old.dim_param or old.HasField("dim_value")):
                tied.setdefault(new.dim_param, old)
    names = NameSource({dim.dim_param for dim in _sizes(before)})
    fresh: dict[str, str] = {}
    for dim in _sizes(after):
        name = dim.dim_param
        if name in tied:
            dim.CopyFrom(tied[name])
        elif name:
            if name not in fresh:
                fresh[name] = names.fresh(name)
            dim.dim_param = fresh[name]


def _rename(graph: Any, names: Mapping[str, str], prefix: str, nodes: NameSource) -> None:
    """Rename values of a graph and those nested in it, and nodes so that each name is new."""
    rename_values(names, graph, inputs=True)
    for inner in graphs_within(graph):
        sparse = (tensor.values for tensor in inner.sparse_initializer)
        for value in (*inner.value_info, *sparse):
            value.name = names.get(value.name, value.name)
        for note in inner.quantization_annotation:
            note.tensor_name = names.get(note.tensor_name, note.tensor_name)
            for entry in note.quant_parameter_tensor_names:
                entry.value = names.get(entry.value, entry.value)
    for node in graph.node:
        if node.name:
            node.name = nodes.fresh(prefix + node.name)


def _append(before: Any, after: Any) -> None:
    """Put the second model behind the first."""
    merged, other = before.graph, after.graph
    for field in (
        "node", "input", "output", "initializer", "sparse_initializer", "value_info",
        "quantization_annotation",
    ):  # fmt: skip
        getattr(merged, field).extend(getattr(other, field))
    before.ir_version = max(before.ir_version, after.ir_version)
    sets = {each.domain for each in before.opset_import}
    before.opset_import.extend(e for e in after.opset_import if e.domain not in sets)
    _unite(before.metadata_props, after.metadata_props, "metadata property", lambda item: item.key)
    _unite(merged.metadata_props, other.metadata_props, "metadata property", lambda item: item.key)
    _unite(
        before.functions,
        after.functions,
        "function",
        lambda item: ".".join(filter(None, (item.domain, item.name, item.overload))),
    )


def _unite(into: Any, items: Collection[Any], what: str, key_of: Callable[[Any], str]) -> None:
    present = {key_of(item): item for item in into}
    for item in items:
        old = present.get(key_of(item))
        if old is None:
            into.add().CopyFrom(item)
        elif old != item:
            raise GraphError(f"the models differ in {what} {key_of(item)!r}")
