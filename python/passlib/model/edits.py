"""Edits of models: parts, renamed and fixed ones, and those of nested graphs."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import passlib._core as _core
from passlib import dialects
from passlib.arrays import dtypes
from passlib.arrays.dtypes import as_mapping
from passlib.dialects import Dialect, infer
from passlib.dialects.onnx import schema
from passlib.dialects.onnx.attributes import DIM_PARAMS
from passlib.dialects.onnx.nested import sealed
from passlib.dialects.onnx.reading import Content
from passlib.dialects.onnx.writing.saving import apart
from passlib.errors import GraphError, PasslibError, UnsupportedError, did_you_mean, listed
from passlib.files.optional import require
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.plain import collection_off, operators_of, with_sources
from passlib.lowering import TypeSpec
from passlib.model.graph import ModelGraph, graph_of

M = TypeVar("M")

_NUMBER = re.compile(r"[-+.\d][-+.\deE]*")
"""Texts that look like numbers, which are no names of open sizes."""


def content_of(model: Any, opset: int | None = None) -> Content:
    """Return an ONNX model as it is saved, but with its large weights next to the message.

    ``opset``: of `Model.save`, whose errors this raises.
    """
    if opset is not None:
        model = with_known_operators(model, opset)
    with collection_off():
        return apart(model.data(origins=False, whole=False), opset)


def whole_content_of(model: Any, **options: Any) -> bytes:
    """Return an ONNX model with all of its weights as the bytes of a file.

    ``options``: of `Model.save`. Raises `UnsupportedError` if that is more than 2 GB.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.save(path, durable=False, external_data=False, **options)
        return path.read_bytes()


def with_opset(model: M, opset: int) -> M:
    """Return an ONNX model with another version of ONNX's operators, as `Model.with_opset` does."""
    like: Any = model
    if like.dialect != "onnx":
        raise UnsupportedError(
            f"only ONNX models have versions of operators, and this one is of {like.dialect}; "
            "passlib convert --opset writes it as ONNX"
        )
    return of_content(model, content_of(model, opset))


def with_known_operators(model: M, opset: Any) -> M:
    """Return an ONNX model without operators that are newer than a version, as far as possible.

    They are replaced as by the pass ``decompose``. The same model is returned if it has none, is
    not of ONNX, or if there is no such version.
    """
    like: Any = model
    is_version = isinstance(opset, int) and not isinstance(opset, bool)
    if like.dialect != "onnx" or not is_version or not 1 <= opset <= schema.newest():
        return model
    # Operators of other domains have their names too, and none of them is replaced.
    known = [
        schema.schema_of(name, "", schema.newest()) for name in operators_of(like.symbol.graph)
    ]
    if all(own is None or schema.schema_of(own.name, "", opset) for own in known):
        return model
    made: M = like.optimize_for("decompose", target=f"opset={opset}", quiet=True)
    return made


def of_content(model: M, content: bytes) -> M:
    """Return the model of some content, of the class and the dialect of another one."""
    like: Any = model
    family = dialects.find(like.dialect)
    made: M = type(like).of_data(family.load_bytes(content), family.name)
    return made


def extracted(
    symbol: ModelGraph,
    dialect: Dialect,
    inputs: Sequence[str] | str | None,
    outputs: Sequence[str] | str | None,
    weights: Mapping[str, Any],
) -> ModelGraph:
    """Return the part of a graph that computes some values from others.

    Parameters
    ----------
    dialect : Dialect
        That of the symbol.
    inputs : sequence of str, optional
        Names of values that become inputs. By default the part has the inputs that it needs.
    outputs : sequence of str, optional
        Names of values, by default those of the outputs.
    weights : mapping of str to array
        Of the model.

    Raises
    ------
    TypeError
        Names are no strings.
    GraphError
        There is no value of a name, or the outputs need an input that is not among ``inputs``.
    """
    internals = symbol.get_internals()
    places = dict(zip(internals.list_outputs(), internals.entries, strict=True))
    own = dict(zip(symbol.list_outputs(), symbol.entries, strict=True))
    wanted = list(own) if outputs is None else _names("outputs", outputs)
    known = {**places, **own}
    entries = [_found(symbol, known, "outputs", name) for name in wanted]
    if not entries:
        raise GraphError("outputs is empty, and a model has at least one output")
    given = () if inputs is None else inputs
    cuts = {name: _found(symbol, known, "inputs", name) for name in _names("inputs", given)}
    sources = _sources(symbol, cuts, weights)
    # The names of the outputs are those of their values, as for any choice of outputs.
    made = symbol.with_entries(with_sources(entries, sources))
    if inputs is not None:
        _check_complete(made, dialect, cuts, weights)
    return made


def _names(what: str, given: Sequence[str] | str) -> list[str]:
    if not isinstance(given, (str, Sequence)):
        raise TypeError(f"{what} is {given!r}, but must be a sequence of names of values")
    names = [given] if isinstance(given, str) else list(given)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"{what} has {wrong[0]!r}, but must be names of values")
    return list(dict.fromkeys(names))


def _found(symbol: ModelGraph, places: Mapping[str, Entry], what: str, name: str) -> Entry:
    entry = places.get(name)
    if entry is None:
        owner = _owner_of_nested(symbol, name)
        if owner is not None:
            raise GraphError(
                f"{what}: the value {name!r} is inside a nested graph of node {owner.name!r} "
                f"({owner.op}), of which no part can be taken; take that node's outputs"
            )
        hint = did_you_mean(name, places) or f"; its values are {listed(list(places))}"
        raise GraphError(f"{what}: the model has no value {name!r}{hint}")
    return entry


def _owner_of_nested(symbol: ModelGraph, name: str) -> Node | None:
    """Return the node of the outermost graph that has a value of this name in a nested graph."""
    for node in symbol.nodes():
        pending = list(node.subgraphs)
        while pending:
            nested = pending.pop().get_internals()
            # Names of values depend on the whole model's attributes about its file.
            if name in symbol.with_entries(nested.entries).list_outputs():
                return node
            pending += [graph for inner in nested.nodes() for graph in inner.subgraphs]
    return None


def _sources(
    symbol: ModelGraph, cuts: Mapping[str, Entry], weights: Mapping[str, Any]
) -> dict[tuple[Node, int], Node]:
    """Return the variables that take the place of values that are no variables yet."""
    inner = {name: entry for name, entry in cuts.items() if not entry.node.is_variable}
    if not inner:
        return {}
    types = _types(symbol, weights)
    sources = {}
    for name, entry in inner.items():
        specs = types.get(entry.node, ())
        spec = specs[entry.index] if entry.index < len(specs) else TypeSpec(None, None)
        sources[entry.node, entry.index] = Node(VARIABLE, name, _attributes(spec), num_outputs=1)
    return sources


def _types(symbol: ModelGraph, weights: Mapping[str, Any]) -> Mapping[Node, tuple[TypeSpec, ...]]:
    if importlib.util.find_spec("onnx") is None:  # which inference needs
        return {}
    shapes = {name: array.shape for name, array in weights.items()}
    return infer(symbol, shapes, {name: array.dtype for name, array in weights.items()}).outputs


def _attributes(spec: TypeSpec) -> dict[str, str]:
    """Return the attributes that state the type of a new variable, as far as it is known."""
    stated = {}
    if spec.shape is not None:
        sizes = ("-1" if size is None else str(size) for size in spec.shape)
        stated["__shape__"] = f"({', '.join(sizes)}{',' * (len(spec.shape) == 1)})"
    if spec.dtype is not None:
        with suppress(UnsupportedError):  # strings: no pass sees arrays of them
            stated["__dtype__"] = str(dtypes.code(spec.dtype))
    return stated


def _check_complete(
    made: ModelGraph, dialect: Dialect, cuts: Collection[str], weights: Mapping[str, Any]
) -> None:
    needed = [name for name in dialect.data_inputs(made.graph) if name not in weights]
    missing = [name for name in needed if name not in cuts]
    if missing:
        raise GraphError(
            f"inputs lacks {listed([repr(name) for name in missing], 4)}, which the outputs also "
            f"need; it has {listed([repr(name) for name in cuts], 4)}"
        )


def renamed(symbol: ModelGraph, dialect: Dialect, names: Mapping[str, str]) -> ModelGraph:
    """Return a graph with other names; all that has one of the old names gets the new one.

    ``dialect``: that of the symbol. ``names``: new names by old names.

    Raises
    ------
    TypeError
        Names are no strings.
    GraphError
        Nothing has an old name, or a new one is taken.
    """
    if names is None:
        raise TypeError("names is None, but must be a dictionary of new names by old ones")
    for old, name in as_mapping("names", names, "'new name'").items():
        if not (isinstance(old, str) and _is_name(name)):
            raise TypeError(f"names has {old!r}: {name!r}, but must have names by names")
    new = {old: name for old, name in names.items() if old != name}
    graph = symbol.graph
    nodes = graph.nodes()
    present = symbol.list_outputs()
    outputs = [new.get(name, name) for name in present] if dialect.names_outputs else []
    known = {node.name for node in nodes}.union(present if dialect.names_outputs else ())
    for name in new:
        if name not in known:
            raise GraphError(_unknown(name, symbol, known))
    made = [node._replace(name=new.get(node.name, node.name)) for node in nodes]
    _check_free(nodes, made, new)
    attributes = dict(symbol.attributes)
    result = _core.Graph.build(made, graph.heads())
    result.check()
    if outputs != present and dialect.names_outputs:
        _check_outputs(outputs, made, graph.heads())
    if dialect.names_outputs:
        attributes |= dialect.with_output_names(result, outputs)
    return graph_of(result, attributes, dialect.name)


def _is_name(new: Any) -> bool:
    """Whether something can be a name in a file: not empty, and Unicode without halves."""
    if not isinstance(new, str):
        return False
    halves = any("\ud800" <= character <= "\udfff" for character in new)
    return new != "" and "\0" not in new and not halves


def _unknown(name: str, symbol: ModelGraph, known: set[str]) -> str:
    outputs = zip(symbol.list_outputs(), symbol.entries, strict=True)
    for output, entry in outputs:
        if output == name:
            return (
                f"the output {name!r} has its name from the node that computes it; rename the "
                f"node {entry.node.name!r}"
            )
    return f"the model has no input, weight, node or output {name!r}" + did_you_mean(name, known)


def _check_free(
    before: list[_core.NodeTuple], after: list[_core.NodeTuple], new: Mapping[str, str]
) -> None:
    """Refuse a new name that a node or variable has that is not renamed, or two get."""
    earlier = Counter(node.name for node in before)
    count = Counter(node.name for node in after)
    for old, name in new.items():
        if old in earlier and count[name] > earlier[old]:
            raise GraphError(f"{old!r} cannot be renamed to {name!r}: that name is taken")


def _check_outputs(
    outputs: list[str], nodes: list[_core.NodeTuple], heads: list[tuple[int, int, int]]
) -> None:
    variables = {node.name for node in nodes if node.op == VARIABLE}
    seen: dict[str, tuple[int, int]] = {}
    for name, (position, index, _) in zip(outputs, heads, strict=True):
        other = seen.setdefault(name, (position, index))
        is_own = nodes[position].op == VARIABLE and nodes[position].name == name
        if other != (position, index) or (name in variables and not is_own):
            raise GraphError(f"an output cannot be renamed to {name!r}: that name is taken")


def with_shapes(
    symbol: ModelGraph,
    shapes: Mapping[str, Sequence[int | str | None]],
    stated: Mapping[str, TypeSpec],
) -> ModelGraph:
    """Return a graph whose inputs state other shapes, as `Model.with_shapes` describes them.

    ``stated``: what the model states for each of its inputs.
    """
    texts = {
        name: _shape_attributes(name, shape, stated, symbol.family)
        for name, shape in as_mapping("shapes", shapes, "shape").items()
    }
    graph = symbol.graph
    nodes = [
        node._replace(attrs={**node.attrs, **texts[node.name]})
        if node.op == VARIABLE and node.name in texts
        else node
        for node in graph.nodes()
    ]
    made = _core.Graph.build(nodes, graph.heads())
    made.check()
    return graph_of(made, symbol.attributes, symbol.dialect)


def _shape_attributes(
    name: str,
    shape: Sequence[int | str | None],
    stated: Mapping[str, TypeSpec],
    dialect: Dialect,
) -> dict[str, str]:
    spec = stated.get(name)
    if spec is None:
        raise GraphError(f"the model has no input {name!r}; its inputs are {listed([*stated])}")
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise TypeError(f"shapes[{name!r}] is {shape!r}, but must be a sequence of sizes")
    if dialect.name == "onnx" and spec.dtype is None:
        raise GraphError(f"input {name!r} is no tensor, so it has no shape")
    before = spec.shape if spec.shape is not None else (None,) * len(shape)
    if len(before) != len(shape):
        raise GraphError(f"input {name!r} has {len(before)} sizes, not {len(shape)}")
    for size in shape:
        if isinstance(size, str):
            is_size = _NUMBER.fullmatch(size) is None
        else:
            number = isinstance(size, (int, np.integer)) and not isinstance(size, bool)
            is_size = size is None or (number and 0 < size < 1 << 63)
        if not is_size:
            raise GraphError(
                f"input {name!r}: {size!r} is no size; write a number above 0, a name of an open "
                "size, '?' for one without a name, or None for the present one"
            )
    named = [size if isinstance(size, str) and size != "?" else "" for size in shape]
    wrong = [size for size in named if "," in size]
    if wrong:
        raise GraphError(f"input {name!r}: the name {wrong[0]!r} of a size has a comma")
    if any(named) and dialect.name != "onnx":
        raise UnsupportedError(f"input {name!r}: {dialect.name} cannot name open sizes; use '?'")
    sizes = [old if new is None else new for old, new in zip(before, shape, strict=True)]
    numbers = tuple(None if s is None or isinstance(s, str) else int(s) for s in sizes)
    attributes = _attributes(TypeSpec(None, numbers))
    return {**attributes, DIM_PARAMS: ",".join(named)} if any(named) else attributes


def with_attributes(
    symbol: ModelGraph, name: str, attributes: Mapping[str, str | None]
) -> ModelGraph:
    """Return a graph where a node has other attributes, as `Model.with_attributes` describes."""
    graph = symbol.graph
    nodes = graph.nodes()
    places = [i for i, node in enumerate(nodes) if node.name == name and node.op != VARIABLE]
    if len(places) != 1:
        what = f"{len(places)} nodes" if places else "no node"
        known = [node.name for node in nodes if node.op != VARIABLE]
        hint = "" if places else did_you_mean(name, known)
        raise GraphError(f"the model has {what} {name!r}{hint}")
    texts = as_mapping("attributes", attributes, "text")
    wrong = [key for key, text in texts.items() if not isinstance(text, str | None)]
    if wrong:
        raise TypeError(
            f"attribute {wrong[0]!r} is {texts[wrong[0]]!r}, but must be a text or None"
        )
    node = nodes[places[0]]
    attrs = {**node.attrs, **texts}
    kept = {key: text for key, text in attrs.items() if text is not None}
    nodes[places[0]] = node._replace(attrs=kept)
    made = _core.Graph.build(nodes, graph.heads())
    made.check()
    return graph_of(made, symbol.attributes, symbol.dialect)


Change = Callable[[bytes], bytes | None]


def changed_nested(content: Content, change: Change) -> Content | None:
    """Change the nested graphs of the nodes of a model's graph.

    Result: the changed model, None if nothing was changed.

    Parameters
    ----------
    content : Content
        An ONNX model.
    change : callable
        Gets a model whose graph is a nested graph, with the values that it captures as inputs,
        and returns a model that computes the same, or None.
    """
    weights = [content.weights]

    def held(message: bytes) -> Content:
        proto = require("onnx", extra="run").ModelProto.FromString(message)
        return sealed(proto, *weights)

    def changed(graph: bytes) -> bytes | None:
        try:
            made = change(held(graph))
        except PasslibError:  # a graph that is no complete model stays as it is
            return None
        if isinstance(made, Content):
            weights.append(made.weights)
        return made

    made = _core.with_nested_graphs(_core.OnnxFile(content), changed)
    return None if made is None else held(made)
