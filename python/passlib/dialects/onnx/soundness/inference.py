"""Types of the values of models whose nodes are sound; where ONNX's own inference may not go."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import passlib._core as _core
from passlib.arrays.views import computed
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import INPUTS_ALSO
from passlib.dialects.onnx.nested import copy_of, graphs_within, refill, value_info
from passlib.dialects.onnx.reading import EXTERNAL
from passlib.dialects.onnx.soundness.corrected import (
    Corrections,
    Known,
    Place,
    differs,
    put,
    questionable,
    questionable_calls,
)
from passlib.dialects.onnx.soundness.model import check_model, versions_of
from passlib.dialects.onnx.tensors import to_bytes
from passlib.errors import FormatError, GraphError
from passlib.files.optional import require


def rename_operators(
    graphs: Sequence[Any], places: Sequence[tuple[int, int]], names: Sequence[str]
) -> list[str]:
    """Replace the operators of nodes, and return the former ones.

    ``places``: number of the graph and of the node in it. ``names``: an operator for each of them.
    """
    nodes = [graphs[number].node[place] for number, place in places]
    before = [node.op_type for node in nodes]
    for node, name in zip(nodes, names, strict=True):
        node.op_type = name
    return before


MOST_AXES: Final = 1024
"""Values of more axes are not inferred; no runtime computes with so many. As in cpp/facts."""

_WIDENING: Final = frozenset(
    ("ConcatFromSequence", "Expand", "Gather", "GatherND", "OneHot", "Unsqueeze")
)
"""The operators whose results may have many more axes than an input has."""


def wide_nodes(model: Any, graphs: Sequence[Any], *, certain: bool = False) -> list[Place]:
    """Find the nodes whose results may have more than `MOST_AXES` axes.

    What is found in a function stands at the call.

    Parameters
    ----------
    model : onnx.ModelProto
        With sound nodes, and functions that do not call themselves.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.
    certain : bool
        Leave out those whose results may have fewer.
    """
    bodies = (*graphs, *graphs_within(*model.functions))
    if not any(node.op_type in _WIDENING for body in bodies for node in body.node):
        return []
    # As in ONNX's inference, which this is for.
    facts = _facts(model, believe_stated=True)
    wide = {} if facts is None else facts.wide()
    if not wide:
        return []
    numbers = {place: number for number, (place, _) in enumerate(placed_graphs(model.graph))}
    found = [place for place, is_certain in wide.items() if is_certain or not certain]
    split = [(place, len(place.rpartition(".")[2])) for place in found]
    return sorted((numbers[place[:-size]], int(place[-size:])) for place, size in split)


UNTYPED_ENDS: Final = frozenset(
    (("", "EyeLike"), ("", "RegexFullMatch"), ("ai.onnx.ml", "DictVectorizer"),
     ("ai.onnx.ml", "LabelEncoder"), ("ai.onnx.ml", "TreeEnsemble"))
)  # fmt: skip
"""These operators, by domain and name; ``make sweep-untyped`` finds them."""


def untyped_nodes(model: Any, graphs: Sequence[Any]) -> list[tuple[int, int]]:
    """Find the nodes of these operators that take a value whose type is not stated.

    Result: number of the graph and of the node in it. Calls of functions that contain one of these
    operators are among them: types inside are not known.

    Parameters
    ----------
    model : onnx.ModelProto
        With the types of its values as far as they are known, and functions that do not call
        themselves.
    graphs : sequence of onnx.GraphProto
        Those of the model, in the order of `graphs_within`.
    """
    calls = _calls(model)
    found = [
        (number, place, (node.domain, node.op_type) in calls)
        for number, graph in enumerate(graphs)
        for place, node in enumerate(graph.node)
        if _ends(node) or (calls and (node.domain, node.op_type) in calls)
    ]
    if not found:
        return []
    typed = _typed(model, graphs)
    return [
        (number, place)
        for number, place, is_call in found
        if is_call or not typed.issuperset(filter(None, graphs[number].node[place].input))
    ]


def _ends(node: Any) -> bool:
    return (schema.plain(node.domain), node.op_type) in UNTYPED_ENDS


def _calls(model: Any) -> set[tuple[str, str]]:
    """Return the functions that contain one of the operators, or call such a function."""
    if not model.functions:
        return set()
    inside = {
        (function.domain, function.name): [
            node for graph in graphs_within(function) for node in graph.node
        ]
        for function in model.functions
    }
    found = {key for key, nodes in inside.items() if any(map(_ends, nodes))}
    callers: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for key, nodes in inside.items():
        for node in nodes:
            callers.setdefault((node.domain, node.op_type), set()).add(key)
    pending = list(found)
    while pending:
        new = callers.get(pending.pop(), set()) - found
        found |= new
        pending += new
    return found


def _typed(model: Any, graphs: Sequence[Any]) -> set[str]:
    """Return the names that have a type in each of the graphs that define them."""
    typed: set[str] = set()
    untyped: set[str] = set()
    for graph in graphs:
        stated = set(_stated(graph))
        if model.ir_version >= INPUTS_ALSO:
            stated.update(tensor.name for tensor in graph.initializer)
            stated.update(tensor.values.name for tensor in graph.sparse_initializer)
        untyped.update(name for name in _defined(graph) if name not in stated)
        typed |= stated
    return typed - untyped


def _stated(graph: Any) -> Iterator[str]:
    for value in (*graph.value_info, *graph.input, *graph.output):
        if value.type.WhichOneof("value") is not None:
            yield value.name


def _defined(graph: Any) -> Iterator[str]:
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    yield from (name for node in graph.node for name in node.output)


_UNKNOWN: Final = "passlib: an operator without rules"

_MOST_ROUNDS: Final = 8
"""Bound on repetitions of ONNX's inference; each repeats what the last one found out."""


def open_sizes(model: Any) -> None:
    """Remove negative sizes, which stand for unknown ones, from the stated types of a model."""
    for graph in graphs_within(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _innermost(value.type).tensor_type.shape.dim:
                if dim.dim_value < 0:
                    dim.ClearField("dim_value")


def _innermost(kind: Any) -> Any:
    """Return the type of the elements of sequences, optional values and maps."""
    while True:
        field = kind.WhichOneof("value")
        if field in ("sequence_type", "optional_type"):
            kind = getattr(kind, field).elem_type
        elif field == "map_type":
            kind = kind.map_type.value_type
        else:
            return kind


_SMALL: Final = 1024
"""Arrays of fewer bytes are shown to ONNX's inference, because they may be sizes."""


def without_weights(model: Any, arrays: Mapping[int, Any]) -> Any:
    """Copy a model, with inputs in place of the initializers whose elements it does not have."""
    made = copy_of(model)
    open_sizes(made)
    graph = made.graph
    inputs = {value.name for value in graph.input}
    kept = []
    for number, tensor in enumerate(graph.initializer):
        array = arrays.get(number)
        if array is not None and array.nbytes < _SMALL:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.raw_data = to_bytes(computed(array))
        if tensor.data_location == EXTERNAL or not _has_elements(tensor):
            if tensor.name not in inputs:
                value = value_info(tensor.name, tensor.data_type, tensor.dims)
                graph.input.append(value)
        else:
            kept.append(tensor)
    if len(kept) < len(graph.initializer):
        refill(graph.initializer, kept)
    return made


def _has_elements(tensor: Any) -> bool:
    """Whether the elements of a tensor are in the message, and not set aside."""
    fields = (field.name for field, _ in tensor.ListFields())
    return 0 in tensor.dims or any(name.endswith("_data") for name in fields)


def inferred(model: Any) -> Any:
    """Return a copy of a model with the types of its values, as far as facts know them.

    ``model``: loses its negative sizes. Raises `GraphError` if it is not sound, see `check_model`.
    """
    check_model(model)
    open_sizes(model)
    return _with_types(model)


def disputes(model: Any, doubtful: Iterable[tuple[str, str]] = ()) -> frozenset[str]:
    """Return the values for which ONNX's inference finds other types than facts.

    ``doubtful``: places of graphs in the model, as `placed_graphs` has them, and names of values of
    which no stated type counts. There are none for a model that is not sound.
    """
    wanted: dict[str, set[str]] = {}
    for place, name in doubtful:
        wanted.setdefault(place, set()).add(name)
    bare = copy_of(model)
    for place, graph in placed_graphs(bare.graph):
        names = wanted.get(place)
        if names is None:
            continue
        refill(graph.value_info, [each for each in graph.value_info if each.name not in names])
        for value in graph.output:
            if value.name in names:
                value.ClearField("type")
    try:
        found = inferred(bare)
        return _different(inferred_by_onnx(bare), found) if _wrong(bare, found) else frozenset()
    except GraphError:
        return frozenset()


def inferred_by_onnx(model: Any) -> Any:
    """Return a model with types by ONNX's inference, which passes over nodes that it must not see.

    Parameters and errors are those of `inferred`.
    """
    check_model(model)
    open_sizes(model)
    graphs = list(graphs_within(model.graph))
    wide = wide_nodes(model, graphs)
    known, within = model, graphs
    before: list[Place] | None = None
    for _ in range(_MOST_ROUNDS):
        # Types that the last round found show some of the nodes to be harmless.
        unsafe = sorted({*wide, *untyped_nodes(known, within)})
        if unsafe == before:
            break
        before = unsafe
        names = rename_operators(graphs, unsafe, [_UNKNOWN] * len(unsafe))
        known = _once(model)
        within = list(graphs_within(known.graph))
        rename_operators(graphs, unsafe, names)
        rename_operators(within, unsafe, names)
        if not unsafe:
            break
    return known


def without_disputes(model: Any) -> Any:
    """Copy a model, without the operators that ONNX's inference gets wrong; None if it has none.

    The copy states what ONNX Runtime computes instead. Errors are those of `inferred`.
    """
    wrong = _wrong(model, inferred(model))
    if not wrong:
        return None
    stated = copy_of(model)
    graphs = list(graphs_within(stated.graph))
    put(graphs, wrong)
    rename_operators(graphs, sorted(wrong), [_UNKNOWN] * len(wrong))
    return stated


def unsafe_to_infer(model: Any) -> Any:
    """Return a node through which ONNX's code must not infer types; None if there is none.

    ``model``: with sound nodes. Loses its negative sizes.
    """
    graphs = list(graphs_within(model.graph))
    found = wide_nodes(model, graphs)
    if not found and untyped_nodes(model, graphs):
        # Not by facts: what ONNX's inference does not find out has no type when it gets there.
        known = inferred_by_onnx(model)
        found = untyped_nodes(known, list(graphs_within(known.graph)))
    return graphs[found[0][0]].node[found[0][1]] if found else None


def _facts(model: Any, *, believe_stated: bool = False) -> _core.GraphFacts | None:
    """Return the facts of a model; None if it cannot be read.

    ``believe_stated``: also where the types that the model states contradict inference.
    """
    try:
        file = _core.OnnxFile(_readable(model))
    except FormatError:  # such as a weight without all of its elements
        return None
    imports = versions_of(model.opset_import)
    return _core.GraphFacts(
        file, file.graph, imports, {}, stated=True, believe_stated=believe_stated
    )


def facts_by_place(model: Any) -> Mapping[str, Sequence[Any]]:
    """Return what is known of the outputs of nodes; nothing if the model cannot be read.

    Result: for each output, see `GraphFacts.listed`, by the place of the node, as `ID` has it.
    """
    facts = _facts(model)
    return {} if facts is None else facts.placed()


def _with_types(model: Any) -> Any:
    made = copy_of(model)
    found = facts_by_place(made)
    names = {
        dim.dim_param
        for graph in graphs_within(made.graph)
        for value in (*graph.input, *graph.value_info, *graph.output)
        for dim in _innermost(value.type).tensor_type.shape.dim
        if "/" not in dim.dim_param  # as in the names that inference gives to unknown sizes
    }
    for place, graph in placed_graphs(made.graph):
        stated = {value.name: value for value in (*graph.value_info, *graph.output)}
        for number, node in enumerate(graph.node):
            for name, fact in zip(node.output, found.get(f"{place}{number}", ()), strict=False):
                kind = _kind_of(fact, names)
                if not name or kind is None:
                    continue
                if name not in stated:
                    graph.value_info.add(name=name).type.CopyFrom(kind)
                else:
                    _fill(stated[name].type, kind)
    return made


def _readable(model: Any) -> bytes:
    """Serialize a model without its large weights, and with an output if it has none."""
    made = without_weights(model, {})
    if not made.graph.output and made.graph.node:
        made.graph.output.add(name=next(filter(None, made.graph.node[-1].output), ""))
    return bytes(made.SerializeToString())


def placed_graphs(graph: Any) -> Iterator[tuple[str, Any]]:
    """Iterate over a graph and those nested in it, each with its place as `ID` has it."""
    pending = [("", graph)]
    while pending:
        place, graph = pending.pop()
        yield place, graph
        for number, node in enumerate(graph.node):
            for attribute in node.attribute:
                inside = f"{place}{number}.{attribute.name}"
                if attribute.HasField("g"):
                    pending.append((f"{inside}.", attribute.g))
                pending += [(f"{inside}[{i}].", each) for i, each in enumerate(attribute.graphs)]


def _kind_of(fact: Any, names: Collection[str]) -> Any:
    """Return a fact as a TypeProto; None if the element type is not known.

    ``names``: those that dimensions of the model have.
    """
    code, wrappers, sizes, _, _, key = fact
    if not code:
        return None
    kind = inner = require("onnx", extra="onnx").TypeProto()
    for wrapper in wrappers:
        if wrapper == "m":
            inner.map_type.key_type = key
            inner = inner.map_type.value_type
        else:
            field = inner.sequence_type if wrapper == "s" else inner.optional_type
            inner = field.elem_type
    inner.tensor_type.elem_type = code
    if sizes is not None:
        inner.tensor_type.shape.SetInParent()
    for size in sizes or ():
        dim = inner.tensor_type.shape.dim.add()
        if isinstance(size, int):
            dim.dim_value = size
        elif size in names:
            dim.dim_param = size
    return kind


def _fill(stated: Any, kind: Any) -> None:
    """Replace a stated type by a known one, without the names of dimensions that it leaves open."""
    before = list(_innermost(stated).tensor_type.shape.dim)
    after = _innermost(kind).tensor_type.shape.dim
    if len(before) == len(after) and stated.WhichOneof("value") == kind.WhichOneof("value"):
        for old, new in zip(before, after, strict=True):
            if old.dim_param and not new.HasField("dim_value"):
                new.dim_param = old.dim_param
    stated.CopyFrom(kind)


def _wrong(model: Any, found: Any) -> Corrections:
    """Return the nodes of a model that ONNX's inference gets wrong, with the right types.

    ``found``: the model with types by facts. Calls of functions with such nodes are among them.
    """
    graphs = list(graphs_within(model.graph))
    calls = questionable_calls(model, graphs)
    wrong: Corrections = {
        (number, place): [None] * len(graphs[number].node[place].output) for number, place in calls
    }
    asked = questionable(graphs)
    if not asked:
        return wrong
    known = Known(found)
    for number, place in asked:
        node = graphs[number].node[place]
        right = [known.type(name, number) for name in node.output]
        alone = known.alone(node, number, model)
        if unsafe_to_infer(alone) is not None:
            continue
        plain = {value.name: value.type for value in _once(alone).graph.output}
        names = known.names(node, number)
        if any(
            differs(plain[name], kind, names)
            for name, kind in zip(node.output, right, strict=True)
            if name
        ):
            wrong[number, place] = right
    return wrong


def _different(plain: Any, found: Any) -> frozenset[str]:
    """Return the values whose types contradict each other in two models."""
    types = [
        {
            value.name: value.type
            for graph in graphs_within(model.graph)
            for value in (*graph.value_info, *graph.output)
        }
        for model in (plain, found)
    ]
    return frozenset(
        name for name, kind in types[0].items() if differs(kind, types[1].get(name), ())
    )


def _once(model: Any) -> Any:
    inference: Any = require("onnx.shape_inference", extra="onnx")
    try:
        return inference.infer_shapes(model)
    except (inference.InferenceError, RuntimeError, ValueError, IndexError, OverflowError):
        return model
    except MemoryError as error:
        raise GraphError("type inference of this model needs more memory than there is") from error
