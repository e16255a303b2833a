"""Checks certificates of rewrites: whether one ONNX model computes what another one does.

This module shares no code with passlib: it needs Python, NumPy, onnx and, where it is installed,
ONNX Runtime. It also runs alone: ``python certificate_checker.py BEFORE AFTER CERTIFICATE``.

A certificate is a list of steps. Each step adds operators and constants under new names, states
that values are the *same* as others, which then replace them, and removes operators that nothing
uses. So each name stands for one array throughout. If all statements of sameness hold, and the last
graph is that of the second model, both models have the same results: by induction over the
operators of the last graph, which has no cycle, each of its values is the array that its name
stands for.

What holds of a statement is found out here, not read from the certificate:

- ``proven``: the step is an application of a rule that is proven, and its match was verified.
- ``recomputed``: two operators are equal, or both values were computed on drawn inputs and agree.
- ``believed``: neither; the reason says why.

A file that does not hold raises `CertificateError`, whose message names the step.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import onnx
import onnx.inliner
from onnx import numpy_helper

Array: TypeAlias = np.ndarray[Any, Any]

FORMAT: Final = 1
_MOST_BYTES: Final = 1 << 30
_MOST_ITEMS: Final = 1 << 20
_MOST_NAME: Final = 1 << 16
_MOST_WORK: Final = 1 << 26
_DRAWS: Final = 3
_SIZES: Final = (2, 3, 1, 4, 8, 16, 32, 64, 128, 256, 512, 640)
"""Sizes that are tried for the open dimensions of inputs."""

_INNER, _CAPTURE = "\x01", "\x02"
"""Begin the names in nested graphs: of their own values, and of those from outside."""


class CertificateError(Exception):
    """A certificate that does not hold, or is none."""


# The model of a graph: nodes whose nested graphs have canonical names.


@dataclass(eq=False)
class Node:
    """An operator: ``captures`` are the outer values that its nested graphs use.

    ``made_by`` is what passlib notes of rules; only makers of certificates read it.
    """

    op: str
    domain: str
    attributes: tuple[tuple[str, bytes], ...]
    inputs: list[str]
    captures: list[str]
    outputs: list[str]
    made_by: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Its first result."""
        return next(filter(None, self.outputs), "")

    @property
    def uses(self) -> list[str]:
        """The values that it uses."""
        return [*filter(None, self.inputs), *self.captures]

    def key(self, now: Callable[[str], str]) -> tuple[Any, ...]:
        """Return what makes it equal to another operator, but for the names of its results."""
        return (
            self.op,
            self.domain,
            self.attributes,
            tuple(map(now, self.inputs)),
            tuple(map(now, self.captures)),
            tuple(map(bool, self.outputs)),
        )


@dataclass(eq=False)
class Constant:
    """A known value."""

    tensor: onnx.TensorProto
    key: tuple[Any, ...]


@dataclass(eq=False)
class Graph:
    """A graph whose values have names that are given once."""

    inputs: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)
    defaults: dict[str, Constant] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    producers: dict[str, Node] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    types: dict[str, onnx.ValueInfoProto] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether a value is there."""
        return name in self.producers or name in self.constants or name in self.inputs

    def add(self, node: Node) -> None:
        """Add an operator, whose results must be new."""
        for name in filter(None, node.outputs):
            if self.has(name):
                raise CertificateError(f"there are two values {name!r}")
            self.producers[name] = node
        if not node.name:
            raise CertificateError(f"a {node.op} has no result")
        self.nodes[node.name] = node

    def remove(self, node: Node) -> None:
        """Remove an operator."""
        del self.nodes[node.name]
        for name in filter(None, node.outputs):
            del self.producers[name]


def _require_texts(message: Any) -> None:
    """Require that the texts of a message are UTF-8; protobuf returns others as bytes."""
    pending = [message]
    while pending:
        for kind, value in pending.pop().ListFields():
            several = [value] if isinstance(value, (str, bytes)) else value
            if kind.type == kind.TYPE_STRING and not all(isinstance(v, str) for v in several):
                raise ValueError(f"a {kind.name} is no UTF-8")
            if kind.type == kind.TYPE_MESSAGE:
                pending += [value] if hasattr(value, "ListFields") else value


def _require_small(model: onnx.ModelProto) -> None:
    """Require that functions do not become too many operators where they are called."""
    sizes = {(f.domain, f.name): 1 for f in model.functions}
    for _ in range(64):
        before = dict(sizes)
        for function in model.functions:
            calls, pending = [], list(function.node)
            while pending:
                node = pending.pop()
                calls.append((node.domain, node.op_type))
                pending += [n for a in node.attribute for g in _graphs_of(a) for n in g.node]
            sizes[function.domain, function.name] = sum(sizes.get(call, 1) for call in calls)
        if max(sizes.values()) > _MOST_ITEMS:
            break
        if sizes == before:
            return
    raise ValueError("the functions call each other too often")


def load_model(content: bytes, path: Path) -> onnx.ModelProto:
    """Read a model with its external data; its functions become operators where they are called."""
    try:
        model = onnx.load_model_from_string(content)
        _require_texts(model)
        onnx.load_external_data_for_model(model, str(path.parent))
        if model.functions:
            _require_small(model)
            model = onnx.inliner.inline_local_functions(model)
    except Exception as error:  # of protobuf, of onnx and of the system
        raise CertificateError(f"{path}: not an ONNX model: {error}") from None
    return model


def read_graph(model: onnx.ModelProto) -> Graph:
    """Read the main graph of a model."""
    made = Graph()
    graph = model.graph
    for value in graph.input:
        made.inputs[value.name] = value
    for tensor in graph.initializer:
        place = made.defaults if tensor.name in made.inputs else made.constants
        place[tensor.name] = constant_of(tensor)
    for sparse in graph.sparse_initializer:
        name = sparse.values.name
        made.constants[name] = Constant(sparse.values, ("sparse", sparse.SerializeToString()))
    for proto in graph.node:
        node = node_of(proto)
        constant = _stated_constant(proto)
        if constant is None or made.has(node.name):
            made.add(node)
        else:
            made.constants[node.name] = constant
    for value in graph.output:
        made.outputs[value.name] = value.name
        made.types[value.name] = value
    for node in made.nodes.values():
        for name in node.uses:
            if not made.has(name):
                raise CertificateError(f"{node.name!r} ({node.op}) uses {name!r}, which is missing")
    for name in made.outputs:
        if not made.has(name):
            raise CertificateError(f"the output {name!r} is missing")
    return made


def constant_of(tensor: onnx.TensorProto) -> Constant:
    """Return a tensor with a hash of its elements."""
    if tensor.data_type == onnx.TensorProto.STRING:
        content = b"".join(len(item).to_bytes(8, "big") + item for item in tensor.string_data)
    else:
        try:
            content = numpy_helper.to_array(tensor).tobytes()
        except Exception as error:  # of onnx: any
            raise CertificateError(f"the tensor {tensor.name!r} is malformed: {error}") from None
        content = tensor.raw_data if tensor.HasField("raw_data") else content
    digest = hashlib.sha256(content).hexdigest()
    return Constant(tensor, (tensor.data_type, tuple(tensor.dims), digest))


def _stated_constant(proto: onnx.NodeProto) -> Constant | None:
    """Return the value of an operator Constant."""
    if proto.op_type != "Constant" or proto.domain not in ("", "ai.onnx"):
        return None
    if len(proto.attribute) != 1:
        return None
    (stated,) = proto.attribute
    kind = onnx.AttributeProto
    if stated.type == kind.TENSOR:
        return constant_of(stated.t)
    values: dict[int, Any] = {
        kind.FLOAT: lambda: np.float32(stated.f),
        kind.FLOATS: lambda: np.array(stated.floats, np.float32),
        kind.INT: lambda: np.int64(stated.i),
        kind.INTS: lambda: np.array(stated.ints, np.int64),
    }
    if stated.type not in values:
        return None
    return constant_of(numpy_helper.from_array(np.asarray(values[stated.type]())))


def node_of(proto: onnx.NodeProto) -> Node:
    """Return an operator; names inside of nested graphs become canonical."""
    captures: list[str] = []
    ordered = sorted(proto.attribute, key=lambda one: one.name)
    attributes = [(each.name, _canonical(each, captures)) for each in ordered]
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    return Node(
        proto.op_type,
        domain,
        tuple(attributes),
        list(proto.input),
        captures,
        list(proto.output),
        [entry.value for entry in proto.metadata_props if entry.key == "__rules__"],
    )


def _canonical(attribute: onnx.AttributeProto, captures: list[str]) -> bytes:
    """Return an attribute as bytes that depend on what it means only."""
    made = onnx.AttributeProto()
    made.CopyFrom(attribute)
    made.ClearField("doc_string")
    for tensor in [*([made.t] if made.HasField("t") else []), *made.tensors]:
        _plain_tensor(tensor)
    count = [0]
    for graph in _graphs_of(made):
        _number(graph, {}, captures, count)
    return bytes(made.SerializeToString(deterministic=True))


def _graphs_of(attribute: onnx.AttributeProto) -> list[onnx.GraphProto]:
    return [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]


def _plain_tensor(tensor: onnx.TensorProto) -> None:
    """Store elements as bytes, and without a name."""
    tensor.ClearField("doc_string")
    tensor.ClearField("name")
    if tensor.data_type == onnx.TensorProto.STRING or tensor.HasField("raw_data"):
        return
    try:
        content = numpy_helper.to_array(tensor).tobytes()
    except Exception as error:  # of onnx: any
        raise CertificateError(f"a tensor is malformed: {error}") from None
    dims, kind = list(tensor.dims), tensor.data_type
    tensor.Clear()
    tensor.dims.extend(dims)
    tensor.data_type = kind
    tensor.raw_data = content


def _number(
    graph: onnx.GraphProto, outer: Mapping[str, str], captures: list[str], count: list[int]
) -> None:
    """Give canonical names to the values of a nested graph. Files nest at most 33 graphs."""
    names = dict(outer)

    def define(name: str) -> str:
        if name:
            count[0] += 1
            names[name] = f"{_INNER}{count[0]}"
        return names.get(name, "")

    def refer(name: str) -> str:
        if not name or name in names:
            return names.get(name, "")
        if name not in captures:
            captures.append(name)
        return f"{_CAPTURE}{captures.index(name)}"

    for field_name in ("value_info", "doc_string", "metadata_props", "quantization_annotation"):
        graph.ClearField(field_name)
    graph.name = "g"
    given = {value.name for value in graph.input}
    for value in graph.input:
        value.name = define(value.name)
        value.ClearField("doc_string")
        value.ClearField("metadata_props")
    for tensor in graph.initializer:
        name = tensor.name  # of a value that an input defines, in old files
        _plain_tensor(tensor)
        tensor.name = names[name] if name in given else define(name)
    for node in graph.node:
        for spot, name in enumerate(node.input):
            node.input[spot] = refer(name)
        ordered = sorted(node.attribute, key=lambda one: one.name)
        stated = [onnx.AttributeProto.FromString(each.SerializeToString()) for each in ordered]
        for each in stated:
            each.ClearField("doc_string")
            for tensor in [*([each.t] if each.HasField("t") else []), *each.tensors]:
                _plain_tensor(tensor)
            for inner in _graphs_of(each):
                # Values that an inner graph captures from this one have names.
                _number(inner, names, captures, count)
        node.ClearField("attribute")
        node.attribute.extend(stated)
        for field_name in ("name", "doc_string", "metadata_props"):
            node.ClearField(field_name)
        if node.domain == "ai.onnx":
            node.domain = ""
        for spot, name in enumerate(node.output):
            node.output[spot] = define(name)
    for value in graph.output:
        value.name = refer(value.name)
        value.ClearField("doc_string")
        value.ClearField("metadata_props")


def _with_names(attribute: bytes, name_of: Callable[[str], str]) -> onnx.AttributeProto:
    """Return an attribute with other names in its nested graphs."""
    made: onnx.AttributeProto = onnx.AttributeProto.FromString(attribute)
    pending = _graphs_of(made)
    while pending:
        graph = pending.pop()
        for value in [*graph.input, *graph.output]:
            value.name = name_of(value.name)
        for tensor in graph.initializer:
            tensor.name = name_of(tensor.name)
        for node in graph.node:
            for names in (node.input, node.output):
                for spot, name in enumerate(names):
                    names[spot] = name_of(name) if name else ""
            for each in node.attribute:
                pending += _graphs_of(each)
    return made


def proto_of(node: Node, now: Callable[[str], str], number: int) -> onnx.NodeProto:
    """Return an operator as a file has it."""

    def name_of(name: str) -> str:
        if name.startswith(_CAPTURE):
            return now(node.captures[int(name[1:])])
        return f"~{number}.{name[1:]}"

    made = onnx.NodeProto(op_type=node.op, domain=node.domain)
    made.input.extend(now(name) if name else "" for name in node.inputs)
    made.output.extend(node.outputs)
    made.attribute.extend(_with_names(content, name_of) for _, content in node.attributes)
    return made


# The certificate: JSON whose every item is checked before it is used.


@dataclass
class Step:
    """One step, as it is read."""

    number: int
    label: str
    claim: str
    rules: tuple[str, ...]
    nodes: list[Node]
    constants: dict[str, Constant]
    same: list[tuple[str, str]]
    dead: list[str]
    bound: dict[str, str]
    why: str

    def __str__(self) -> str:
        return f"step {self.number} ({', '.join(self.rules) or self.label})"


@dataclass
class Certificate:
    """A certificate, as it is read."""

    before: str
    after: str
    rules: dict[str, tuple[str, str]]
    steps: list[Step]


def read_certificate(content: bytes, after: Graph) -> Certificate:
    """Read a certificate; constants may be those of the model after the rewrites."""
    if len(content) > _MOST_BYTES:
        raise CertificateError("the certificate has more than 1 GiB")
    try:
        text = content.decode()
        found = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_no_number, parse_int=_small
        )
    except UnicodeDecodeError as error:
        raise CertificateError(f"the certificate is no UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"the certificate is no JSON: {error}") from None
    top = _Reader("the certificate", found)
    if top.integer("format") != FORMAT:
        raise CertificateError(f"the certificate has another format than {FORMAT}")
    rules = {}
    for name, each in top.mapping("rules").items():
        rule = _Reader(f"rule {name!r}", each)
        text, digest = rule.text("text", 1 << 20), rule.text("sha256")
        rule.done()
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise CertificateError(f"the text of rule {name!r} has another hash than it states")
        rules[name] = (text, digest)
    steps = []
    for number, each in enumerate(top.items("steps"), 1):
        steps.append(read_step(number, each, rules, after))
    made = Certificate(top.text("before"), top.text("after"), rules, steps)
    top.done()
    return made


def _is_text(found: Any, most: int = _MOST_NAME) -> bool:
    """Whether a value is a text that a file can have, of limited length."""
    try:
        return isinstance(found, str) and len(found) <= most and bool(found.encode() or True)
    except UnicodeEncodeError:  # half of a pair
        return False


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if not all(map(_is_text, made)):
        raise CertificateError("the certificate has a key that is no text")
    if len(made) != len(pairs):
        raise CertificateError("the certificate states a key twice")
    return made


def _no_number(text: str) -> Any:
    raise CertificateError(f"the certificate has {text}, which is no JSON")


def _small(text: str) -> int:
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise CertificateError(f"the number {text[:20]}... of the certificate is too large")
    return int(text)


class _Reader:
    """Items of a JSON object with the types that they must have."""

    def __init__(self, where: str, found: Any) -> None:
        self.where = where
        if not isinstance(found, dict):
            raise CertificateError(f"{where} must be an object, not {_kind(found)}")
        self._left = dict(found)

    def _take(self, name: str, kind: type, said: str) -> Any:
        if name not in self._left:
            raise CertificateError(f"{self.where} has no {name!r}")
        found = self._left.pop(name)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise CertificateError(f"{self.where}: {name!r} must be {said}, not {_kind(found)}")
        return found

    def integer(self, name: str) -> int:
        return int(self._take(name, int, "an integer"))

    def text(self, name: str, most: int = _MOST_NAME) -> str:
        found = str(self._take(name, str, "a text"))
        if not _is_text(found, most):
            raise CertificateError(f"{self.where}: {name!r} is too long, or no Unicode")
        return found

    def mapping(self, name: str) -> dict[str, Any]:
        return dict(self._take(name, dict, "an object"))

    def items(self, name: str) -> list[Any]:
        found = list(self._take(name, list, "a list"))
        if len(found) > _MOST_ITEMS:
            raise CertificateError(f"{self.where}: {name!r} has more than {_MOST_ITEMS} items")
        return found

    def texts(self, name: str) -> list[str]:
        found = self.items(name)
        for each in found:
            if not _is_text(each):
                raise CertificateError(f"{self.where}: {name!r} must hold texts, not {_kind(each)}")
        return found

    def done(self) -> None:
        if self._left:
            raise CertificateError(f"{self.where} has an unknown item {min(self._left)!r}")


def _kind(found: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth", type(None): "null"}
    return names.get(type(found), "a number")


def read_step(number: int, found: Any, rules: Mapping[str, Any], after: Graph) -> Step:
    """Read one step, by its number from 1."""
    where = f"step {number}"
    reader = _Reader(where, found)
    constants = {}
    for each in reader.items("constants"):
        name, constant = _constant(_Reader(f"a constant of {where}", each), after)
        if name in constants:
            raise CertificateError(f"{where} makes the constant {name!r} twice")
        constants[name] = constant
    nodes = [_node(_Reader(f"an operator of {where}", each)) for each in reader.items("nodes")]
    same = []
    for each in reader.items("same"):
        if not isinstance(each, list) or len(each) != 2 or not all(map(_is_text, each)):
            raise CertificateError(f"{where}: 'same' must hold pairs of names")
        same.append((each[0], each[1]))
    used = tuple(reader.texts("rules"))
    for name in used:
        if name not in rules:
            raise CertificateError(f"{where} names the rule {name!r}, whose text is missing")
    made = Step(
        number,
        reader.text("pass"),
        reader.text("claim"),
        used,
        nodes,
        constants,
        same,
        reader.texts("dead"),
        reader.mapping("bound"),
        reader.text("believe"),
    )
    if not all(map(_is_text, made.bound.values())):
        raise CertificateError(f"{where}: 'bound' must hold names of values")
    if made.claim not in CLAIMS:
        raise CertificateError(f"{where} has an unknown claim {made.claim[:40]!r}")
    reader.done()
    return made


def _constant(reader: _Reader, after: Graph) -> tuple[str, Constant]:
    name, digest = reader.text("name"), reader.text("sha256")
    source, content = reader.text("after"), reader.text("tensor", _MOST_BYTES)
    reader.done()
    if source:
        if source not in after.constants:
            raise CertificateError(
                f"{reader.where}, {name!r}: the model after has no constant {source!r}"
            )
        made = after.constants[source]
    else:
        try:
            tensor = onnx.TensorProto.FromString(base64.b64decode(content, validate=True))
            _require_texts(tensor)
        except Exception as error:  # of base64 and protobuf
            raise CertificateError(f"{reader.where}, {name!r}, is no tensor: {error}") from None
        if tensor.external_data or tensor.data_location:
            raise CertificateError(f"{reader.where}, {name!r}, is in another file")
        made = constant_of(tensor)
    if made.key[-1] != digest:
        raise CertificateError(f"{reader.where}, {name!r}, has another hash than is stated")
    return name, made


def _node(reader: _Reader) -> Node:
    attributes = []
    for name, value in sorted(reader.mapping("attributes").items()):
        attributes.append((name, _attribute(reader.where, name, value)))
    made = Node(
        reader.text("op"),
        reader.text("domain"),
        tuple(attributes),
        reader.texts("inputs"),
        reader.texts("captures"),
        reader.texts("outputs"),
    )
    reader.done()
    for name in (*made.inputs, *made.outputs, *made.captures):
        if name.startswith(("~", _INNER, _CAPTURE)):
            raise CertificateError(f"{reader.where}: {name!r} cannot be a name")
    for _, content in made.attributes:
        for name in _captured(content):
            if not name[1:].isdecimal() or int(name[1:]) >= len(made.captures):
                raise CertificateError(f"{reader.where} captures more values than it lists")
    return made


def _captured(attribute: bytes) -> set[str]:
    """Return the names in an attribute's graphs that stand for values from outside."""
    found: set[str] = set()

    def look(name: str) -> str:
        if name.startswith(_CAPTURE):
            found.add(name)
        elif not name.startswith(_INNER):
            raise CertificateError(f"the name {name!r} in a nested graph is not canonical")
        return name

    _with_names(attribute, look)
    return found


_PLAIN: Final = {
    onnx.AttributeProto.INT: "i",
    onnx.AttributeProto.FLOAT: "f",
    onnx.AttributeProto.STRING: "s",
    onnx.AttributeProto.INTS: "ints",
    onnx.AttributeProto.FLOATS: "floats",
}


def attribute_as_json(content: bytes) -> Any:
    """Return an attribute as the certificate has it: its value, or else its bytes."""
    made = onnx.AttributeProto.FromString(content)
    kind = _PLAIN.get(made.type)
    value: Any = None
    if kind is not None:
        value = getattr(made, kind)
        if kind == "s":
            try:
                value = value.decode()
            except UnicodeDecodeError:
                value = None
        elif kind in ("ints", "floats"):
            value = list(value)
    numbers = value if isinstance(value, list) else [value]
    if value is None or any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
        return {"proto": base64.b64encode(content).decode()}
    return {kind: value}


def _attribute(where: str, name: str, found: Any) -> bytes:
    wrong = CertificateError(f"{where}: the attribute {name[:40]!r} has no value")
    if not isinstance(found, dict) or len(found) != 1:
        raise wrong
    ((kind, value),) = found.items()
    made = onnx.AttributeProto(name=name)
    if kind == "proto" and isinstance(value, str):
        try:
            made = onnx.AttributeProto.FromString(base64.b64decode(value, validate=True))
            _require_texts(made)
        except Exception as error:  # of base64 and protobuf
            raise CertificateError(f"{where}: {name[:40]!r} is no attribute: {error}") from None
        if made.name != name:
            raise wrong
        return bytes(made.SerializeToString(deterministic=True))
    kinds = {kind: number for number, kind in _PLAIN.items()}
    if kind not in kinds:
        raise wrong
    made.type = kinds[kind]
    try:
        if kind == "s":
            made.s = value.encode()
        elif kind in ("ints", "floats"):
            getattr(made, kind).extend(value)
        elif isinstance(value, bool):
            raise wrong
        else:
            setattr(made, kind, value)
    except (TypeError, ValueError, AttributeError):
        raise wrong from None
    return bytes(made.SerializeToString(deterministic=True))


# The replay.

CLAIMS: Final = ("rule", "rewrite", "fold", "equal", "same", "dead")
"""The claims of steps: the application of one rule; operators replaced by others;
operators on constants by their results; an operator by an equal one; a value by another; nothing
but operators without users."""


@dataclass
class Verdict:
    """The verdict on a step."""

    step: Step
    state: str
    reason: str = ""


class RuleReader(Protocol):
    """Verifies applications of rules."""

    def apply(self, graph: Graph, sets: Mapping[str, int], step: Step, text: str) -> Any:
        """Return how a step applies its rule, or raise `CertificateError`; None if unknown."""

    def judge(self, found: Any, facts: Any, computed: bool) -> str:
        """Return why such an application is not proven; empty if it is."""

    def facts(self, union: onnx.ModelProto) -> Any:
        """Return what is known of the values of a model."""


class Replay:
    """A graph while the steps of a certificate are applied to it."""

    def __init__(
        self,
        before: Graph,
        sets: Mapping[str, int] | None = None,
        rules: Mapping[str, tuple[str, str]] | None = None,
        reader: RuleReader | None = None,
    ) -> None:
        self.graph = before
        self.sets = sets or {}
        self._rules = rules or {}
        self._reader = reader
        self.matches: dict[int, Any] = {}
        self._work = 0
        # As they were: replacements change the inputs of operators.
        self.first = [
            (node, list(node.inputs), list(node.captures)) for node in before.nodes.values()
        ]
        self.given_constants = dict(before.constants)
        self.made: list[tuple[Node, list[str], list[str]]] = []
        self.added: dict[str, Constant] = {}
        self.root: dict[str, str] = {}
        self._users: dict[str, set[Node]] = defaultdict(set)
        self._results: dict[str, set[str]] = defaultdict(set)
        self.taken: set[str] = set()
        self.pairs: dict[int, list[tuple[str, str]]] = {}
        for node, _, _ in self.first:
            self.taken.update(filter(None, node.outputs))
            for name in node.uses:
                self._users[name].add(node)
        self.taken.update(before.constants, before.inputs)
        for output, value in before.outputs.items():
            self._results[value].add(output)

    def root_of(self, name: str) -> str:
        """Return the value whose array a name's users get when both are computed."""
        while name in self.root:
            name = self.root[name]
        return name

    def is_used(self, name: str) -> bool:
        """Whether an operator or an output uses a value."""
        return bool(self._users.get(name) or self._results.get(name))

    def apply(self, step: Step, look: Callable[[], None] | None = None) -> None:
        """Apply a step; ``look`` is called where the graph has both the old and the new values.

        Raises
        ------
        CertificateError
            It does not fit the graph.
        """
        graph = self.graph
        fresh = set(step.constants)
        for name, constant in step.constants.items():
            self._require_new(step, name)
            graph.constants[name] = self.added[name] = constant
        for node in step.nodes:
            _require_operator(step, node, self.sets)
            for name in node.uses:
                if not graph.has(name):
                    raise CertificateError(
                        f"{step}: the new {node.op} {node.name!r} uses {name!r}, which is missing"
                    )
            for name in filter(None, node.outputs):
                self._require_new(step, name)
                fresh.add(name)
            graph.add(node)
            for name in node.uses:
                self._users[name].add(node)
            rooted = [self.root_of(name) for name in node.inputs]
            self.made.append((node, rooted, [self.root_of(name) for name in node.captures]))
        if look is not None:
            look()
        if step.claim == "rule" and self._reader is not None and len(step.rules) == 1:
            text, _ = self._rules[step.rules[0]]
            found = self._reader.apply(graph, self.sets, step, text)
            if found is not None:
                self.matches[step.number] = found
        for old, new in step.same:
            for name in (old, new):
                if not graph.has(name):
                    raise CertificateError(f"{step}: there is no value {name!r}")
            if old == new:
                raise CertificateError(f"{step}: {old!r} replaces itself")
            if not self._is_evident(old, new):
                self.pairs.setdefault(step.number, []).append((old, new))
            if new in fresh:
                self.root.setdefault(new, self.root_of(old))
            for node in self._users.pop(old, set()):
                self._work += len(node.inputs) + len(node.captures)
                if self._work > _MOST_WORK:
                    raise CertificateError(f"{step}: values are replaced too often")
                node.inputs = [new if name == old else name for name in node.inputs]
                node.captures = [new if name == old else name for name in node.captures]
                self._users[new].add(node)
            for output in self._results.pop(old, set()):
                graph.outputs[output] = new
                self._results[new].add(output)
        for name in step.dead:
            dead = graph.nodes.get(name)
            if dead is None:
                raise CertificateError(f"{step}: there is no operator {name!r} to remove")
            for value in filter(None, dead.outputs):
                if self.is_used(value):
                    raise CertificateError(
                        f"{step}: {name!r} ({dead.op}) is no dead node, because {value!r} is used"
                    )
            for value in dead.uses:
                self._users[value].discard(dead)
            graph.remove(dead)

    def _is_evident(self, old: str, new: str) -> bool:
        """Whether two values are equal constants, or the same result of equal operators."""
        graph = self.graph
        if old in graph.constants or new in graph.constants:
            one, two = graph.constants.get(old), graph.constants.get(new)
            return one is not None and two is not None and one.key == two.key
        mine, theirs = graph.producers.get(old), graph.producers.get(new)
        if mine is None or theirs is None or mine is theirs or mine.op in _RANDOM:
            return False
        return (
            mine.outputs.index(old) == theirs.outputs.index(new)
            and mine.key(str) == theirs.key(str)
            and not mine.captures
        )

    def _require_new(self, step: Step, name: str) -> None:
        if name in self.taken or not name:
            raise CertificateError(f"{step}: the name {name!r} is taken")
        self.taken.add(name)


def _require_operator(step: Step, node: Node, sets: Mapping[str, int]) -> None:
    """Require that ONNX has an operator with so many inputs and results, and these attributes."""
    if node.domain or not sets:
        return
    try:
        schema = onnx.defs.get_schema(node.op, sets.get("", 1), "")
    except onnx.defs.SchemaError:
        raise CertificateError(f"{step}: ONNX has no operator {node.op!r}") from None
    fits = schema.min_input <= len(node.inputs) <= schema.max_input
    if not fits or not schema.min_output <= len(node.outputs) <= schema.max_output:
        raise CertificateError(f"{step}: {node.name!r} ({node.op}) has a wrong number of values")
    unknown = {name for name, _ in node.attributes} - set(schema.attributes)
    if unknown:
        raise CertificateError(f"{step}: {node.op} has no attribute {min(unknown)!r}")


def difference(made: Graph, after: Graph) -> str:
    """Return what differs between two graphs, but for the names of inner values; or nothing."""
    if list(made.outputs) != list(after.outputs):
        return "the outputs are others"
    if list(made.inputs) != list(after.inputs):
        return "the inputs are others"
    for name, value in made.inputs.items():
        if not _narrows(after.inputs[name].type, value.type):
            return f"the type of the input {name!r} is another"
    for name, value in made.types.items():
        stated = (value.type.tensor_type, after.types[name].type.tensor_type)
        if stated[0].elem_type != stated[1].elem_type:
            return f"the type of the output {name!r} is another"
    for name, constant in made.defaults.items():
        if name not in after.defaults or after.defaults[name].key != constant.key:
            return f"the default of the input {name!r} is another"
    pairs = {name: name for name in made.inputs}
    open_nodes: set[str] = set()
    for output in made.outputs:
        pending = [(made.outputs[output], after.outputs[output])]
        while pending:
            mine, theirs = pending[-1]
            if pairs.get(mine) == theirs:
                pending.pop()
                continue
            if mine in pairs:
                return f"{theirs!r} is not {mine!r}"
            if mine in made.constants or theirs in after.constants:
                first, second = made.constants.get(mine), after.constants.get(theirs)
                if first is None or second is None or first.key != second.key:
                    return f"the constant {theirs!r} is another"
                pairs[mine] = theirs
                pending.pop()
                continue
            node, other = made.producers.get(mine), after.producers.get(theirs)
            if node is None or other is None:
                return f"{theirs!r} is not {mine!r}"
            if (node.op, node.domain, node.attributes) != (
                other.op,
                other.domain,
                other.attributes,
            ):
                return f"{theirs!r} ({other.op}) is another operator"
            shape = (len(node.inputs), len(node.captures), len(node.outputs))
            if shape != (len(other.inputs), len(other.captures), len(other.outputs)):
                return f"{theirs!r} ({other.op}) has other inputs"
            missing = []
            for one, two in zip(
                [*node.inputs, *node.captures], [*other.inputs, *other.captures], strict=True
            ):
                if bool(one) != bool(two):
                    return f"{theirs!r} ({other.op}) has other inputs"
                if one and pairs.get(one) != two:
                    missing.append((one, two))
            if missing:
                if mine in open_nodes:
                    return f"there is a cycle through {mine!r}"
                open_nodes.add(mine)
                pending += missing
                continue
            outputs = zip(node.outputs, other.outputs, strict=True)
            pairs.update({one: two for one, two in outputs if one and two})
            if pairs.get(mine) != theirs:
                return f"{theirs!r} is another result of {other.op}"
    return ""


def _narrows(after: onnx.TypeProto, before: onnx.TypeProto) -> bool:
    """Whether a type is that of before, or states sizes that it left open."""
    if after.WhichOneof("value") != before.WhichOneof("value"):
        return False
    if not before.HasField("tensor_type"):
        return bool(after == before)
    one, two = after.tensor_type, before.tensor_type
    if one.elem_type != two.elem_type:
        return False
    if not two.HasField("shape"):
        return True
    if not one.HasField("shape") or len(one.shape.dim) != len(two.shape.dim):
        return False
    return all(
        not old.HasField("dim_value")
        or (new.HasField("dim_value") and new.dim_value == old.dim_value)
        for new, old in zip(one.shape.dim, two.shape.dim, strict=True)
    )


# The values: both models and all that was between them, run once.

_RANDOM: Final = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike", "If", "Loop", "Scan")
)  # fmt: skip
"""Operators that may draw random numbers: equal ones may have other results."""

_CLOSE: Final = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 2e-4, "float64": 1e-6}
"""Largest difference of equal values, for each unit of the largest element."""


@dataclass
class Compared:
    """A comparison of two values in the runs."""

    runs: int = 0
    elements: int = 0
    wrong: str = ""
    where: str = ""


def union_of(
    replay: Replay,
    model: onnx.ModelProto,
    after: onnx.ModelProto,
    wanted: Collection[str],
    forced: bool | None = None,
) -> onnx.ModelProto:
    """Return a model with the operators of all times that some values need.

    ``forced``: the condition of each If, so that its branches run in turn.
    """
    nodes = [*replay.first, *replay.made]
    producers = {name: place for place, (node, _, _) in enumerate(nodes) for name in node.outputs}
    needed: set[int] = set()
    names = set(wanted)
    pending = [*wanted]
    while pending:
        place = producers.get(pending.pop())
        if place is None or place in needed:
            continue
        needed.add(place)
        node, inputs, captures = nodes[place]
        used = [name for name in (*inputs, *captures) if name]
        names.update(used)
        pending += used
    made = onnx.ModelProto(ir_version=max(model.ir_version, after.ir_version, 4))
    for domain, version in {**sets_of(after), **sets_of(model)}.items():
        made.opset_import.add(domain=domain, version=version)
    graph = made.graph
    graph.name = "union"
    narrowed = {value.name: value for value in after.graph.input}
    for name, value in replay.graph.inputs.items():
        given = graph.input.add()
        given.name = name
        given.type.CopyFrom(narrowed[name].type if name in narrowed else value.type)
    constants = {**replay.given_constants, **replay.added}
    for name, constant in [*constants.items(), *replay.graph.defaults.items()]:
        if name in names:
            tensor = graph.initializer.add()
            tensor.CopyFrom(constant.tensor)
            tensor.name = name
    for place in sorted(needed):
        node, inputs, captures = nodes[place]
        copy = Node(node.op, node.domain, node.attributes, inputs, captures, node.outputs)
        graph.node.append(proto_of(copy, str, place))
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(set(wanted)))
    if forced is not None:
        graph.initializer.append(numpy_helper.from_array(np.array(forced), "~forced"))
        graphs = [graph]
        while graphs:
            for each in graphs.pop().node:
                if each.op_type == "If" and each.input and each.input[0] not in constants:
                    each.input[0] = "~forced"
                graphs += [inner for a in each.attribute for inner in _graphs_of(a)]
    return made


def compared(
    replay: Replay,
    model: onnx.ModelProto,
    after: onnx.ModelProto,
    pairs: Sequence[tuple[str, str]],
    options: Mapping[str, Any],
    forced: bool | None = None,
) -> list[Compared]:
    """Compute pairs of values on drawn inputs in another process, which may crash or hang.

    ``options``: ``shapes`` of inputs; ``inputs``, the path of an .npz file; ``seconds``.
    """
    wanted = sorted({name for pair in pairs for name in pair})
    union = union_of(replay, model, after, wanted, forced)
    with tempfile.TemporaryDirectory(prefix="certificate-") as folder:
        place = Path(folder)
        onnx.save_model(
            union,
            str(place / "model.onnx"),
            save_as_external_data=union.ByteSize() > 1 << 30,
            location="data",
        )
        (place / "job.json").write_text(json.dumps({**options, "pairs": list(pairs)}))
        command = [sys.executable, "-P", __file__, "--evaluate", folder]
        # The child reports after each run, so that a late one costs its own result only.
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                check=False,
                timeout=float(options["seconds"]),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        result = place / "result.json"
        if not result.exists():
            return [Compared() for _ in pairs]
        return [Compared(*each) for each in json.loads(result.read_text())]


def _evaluate(folder: Path) -> None:
    """Run the model of a folder on drawn inputs, and write what each pair of values is."""
    job = json.loads((folder / "job.json").read_text())
    model = onnx.load(str(folder / "model.onnx"))
    pairs = [tuple(pair) for pair in job["pairs"]]
    found = [Compared() for _ in pairs]
    run = _runner(model)
    given = {}
    if job.get("inputs"):
        with np.load(job["inputs"]) as file:
            given = {name: file[name] for name in file.files}
    done = 0
    for feeds in _draws(model, job.get("shapes") or {}, given):
        values = run(feeds)
        if values is None:
            continue
        for (one, two), each in zip(pairs, found, strict=True):
            if one in values and two in values and not each.wrong:
                each.wrong = unlike(values[one], values[two])
                each.runs += 1
                each.elements += int(np.size(values[two]))
        done += 1
        written = folder / "result.json.part"
        written.write_text(json.dumps([[e.runs, e.elements, e.wrong] for e in found]))
        written.replace(folder / "result.json")
        if done == (job.get("draws") or _DRAWS):
            return


def _draws(
    model: onnx.ModelProto, shapes: Mapping[str, Any], given: Mapping[str, Array]
) -> Iterator[dict[str, Array]]:
    """Draw inputs of several sizes; what a model does not bear, another draw replaces."""
    known = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in known]
    symbols: list[Any] = []
    for value in inputs:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            symbol = dim.dim_param or (value.name, axis)
            if not is_known(dim) and symbol not in symbols:
                symbols.append(symbol)
    plans: list[dict[Any, int]] = []
    for size in _SIZES:
        for spread, first in ((1, None), (0, None), (0, 1), (1, 1)):
            plan = {symbol: size + spread * place for place, symbol in enumerate(symbols)}
            if first is not None:
                plan.update({s: 1 for s in symbols if isinstance(s, tuple) and s[1] == 0})
                if symbols:
                    plan[symbols[0]] = 1
            if plan not in plans:
                plans.append(plan)
    if not symbols:
        plans = [{}] * 8
    for seed, plan in enumerate(plans):
        random = np.random.default_rng(seed)
        feeds: dict[str, Array] = {}
        for value in inputs:
            if value.name in given:
                feeds[value.name] = given[value.name]
                continue
            stated = shapes.get(value.name)
            sizes = []
            for axis, dim in enumerate(value.type.tensor_type.shape.dim):
                size = dim.dim_value
                if not is_known(dim):
                    size = plan[dim.dim_param or (value.name, axis)]
                if stated is not None and axis < len(stated) and stated[axis] is not None:
                    size = stated[axis]
                sizes.append(size)
            made = _drawn(value.type.tensor_type.elem_type, sizes, random, seed)
            if made is not None:
                feeds[value.name] = made
        yield feeds


def is_known(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether a size is a number."""
    return bool(
        dim.HasField("dim_value") and dim.dim_value >= 0
    )  # -1 is for open ones in old files


def _drawn(kind: int, sizes: Sequence[int], random: np.random.Generator, seed: int) -> Any:
    if math.prod(sizes) > 1 << 26:
        return None
    if kind == onnx.TensorProto.STRING:
        return np.asarray(random.choice(np.array(["a", "b", "1"], object), sizes), object)
    try:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
    except KeyError:
        return None
    if dtype.kind == "b":
        return np.asarray(random.random(sizes) < 0.5)
    if dtype.kind in "iu":
        most = 256 if dtype == np.uint8 else (10, 2, 5, 3)[seed % 4]
        return np.asarray(random.integers(0, most, sizes), dtype)
    return np.asarray(random.standard_normal(sizes), dtype)


def _runner(model: onnx.ModelProto) -> Callable[[dict[str, Array]], dict[str, Any] | None]:
    """Return a function that computes the outputs of a model; those that fail are left out."""
    wanted = [value.name for value in model.graph.output]
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    session = _session(model)
    arrays: dict[str, Any] = {}
    sessions: dict[int, Any] = {}

    def run(feeds: dict[str, Array]) -> dict[str, Any] | None:
        if session is not None:
            try:
                return dict(zip(wanted, session.run(wanted, feeds), strict=True))
            except Exception:  # of a runtime: another draw may fit
                return None
        values: dict[str, Any] = dict(feeds)
        for place, node in enumerate(model.graph.node):
            used = [*node.input, *_outer_names(node)]
            for name in used:
                if name in constants and name not in arrays:
                    arrays[name] = numpy_helper.to_array(constants[name])
                if name in arrays:
                    values[name] = arrays[name]
            if all(name in values for name in used if name):
                own = {name: values[name] for name in used if name}
                values.update(_run_node(model, node, own, sessions, place))
        kept = {name: values[name] for name in wanted if name in values}
        # Most of a model that does not bear the inputs is missing.
        return kept if len(kept) * 2 >= len(wanted) else None

    return run


def _session(model: onnx.ModelProto) -> Any:
    """Return a session of ONNX Runtime without optimization; None if it does not take the model."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # of a runtime: any
        return None


def _outer_names(node: onnx.NodeProto) -> list[str]:
    """Return the values from outside that nested graphs use; their own begin with ``~``."""
    found: list[str] = []
    pending = [graph for each in node.attribute for graph in _graphs_of(each)]
    while pending:
        graph = pending.pop()
        names = [name for inner in graph.node for name in inner.input]
        names += [value.name for value in graph.output]
        found += [name for name in names if name and not name.startswith("~")]
        pending += [each for inner in graph.node for a in inner.attribute for each in _graphs_of(a)]
    return found


def _run_node(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    values: Mapping[str, Any],
    sessions: dict[int, Any],
    place: int,
) -> dict[str, Any]:
    """Compute one operator; nothing if it fails."""
    wanted = [name for name in node.output if name]
    try:
        if place not in sessions:
            alone = onnx.ModelProto(ir_version=model.ir_version)
            alone.opset_import.extend(model.opset_import)
            alone.graph.name = "one"
            alone.graph.node.append(node)
            for name, array in values.items():
                kind = onnx.helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)
                shape = [None] * np.ndim(array)
                alone.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, shape))
            alone.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
            session = _session(alone)
            if session is None:
                from onnx.reference import ReferenceEvaluator

                session = ReferenceEvaluator(alone)
            sessions[place] = session
        return dict(zip(wanted, sessions[place].run(wanted, dict(values)), strict=True))
    except Exception:  # of a runtime: any
        return {}


def unlike(one: Any, two: Any) -> str:
    """Return in what two values differ by more than rounding, or nothing."""
    if not isinstance(one, np.ndarray) or not isinstance(two, np.ndarray):
        return "" if repr(one) == repr(two) else "the values differ"
    if one.dtype != two.dtype or one.shape != two.shape:
        return f"{one.dtype}{list(one.shape)} is not {two.dtype}{list(two.shape)}"
    close = _CLOSE.get(one.dtype.name)
    if close is None:
        return "" if np.array_equal(one, two) else _first_difference(one, two, one != two)
    first, second = one.astype(np.float64), two.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (first == second) | (np.isnan(first) & np.isnan(second))
        finite = np.abs(first[np.isfinite(first)])
        allowed = close * float(finite.max(initial=0.0)) + 1e-30
        wrong = ~same & ~(np.abs(first - second) <= allowed)
    return _first_difference(one, two, wrong) if wrong.any() else ""


def _first_difference(one: Array, two: Array, wrong: Array) -> str:
    place = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"at {list(place)} {one[place]} is not {two[place]}"


# The check as a whole.


def check(
    before: str | os.PathLike[str],
    after: str | os.PathLike[str],
    certificate: str | os.PathLike[str],
    *,
    reader: RuleReader | None = None,
    shapes: Mapping[str, Any] | None = None,
    inputs: str | None = None,
    seconds: float = 300.0,
) -> list[Verdict]:
    """Replay a certificate.

    Parameters
    ----------
    before, after, certificate : path-like
    reader : RuleReader, optional
        Verifies applications of rules; without it, no step is ``proven``.
    shapes : mapping of str to shape, optional
        Shapes of inputs for the runs.
    inputs : str, optional
        An .npz file with inputs for the runs.
    seconds : float
        Time limit of the runs.

    Returns
    -------
    list of Verdict
        One for each step.

    Raises
    ------
    CertificateError
        It does not hold, or a file is malformed.
    OSError
        A file cannot be read.
    """
    paths = [Path(path) for path in (before, after, certificate)]
    for path in paths:
        if path.exists() and not path.is_file():
            raise CertificateError(f"{path}: this is no file")
    contents = [path.read_bytes() for path in paths]
    first, last = (
        load_model(content, path) for content, path in zip(contents[:2], paths, strict=False)
    )
    graphs = [read_graph(first), read_graph(last)]
    stated = read_certificate(contents[2], graphs[1])
    for path, content, digest in zip(paths, contents, (stated.before, stated.after), strict=False):
        if hashlib.sha256(content).hexdigest() != digest:
            raise CertificateError(f"{path}: the file has another hash than the certificate states")
    require_same_sets(first, last)
    replay = Replay(graphs[0], sets_of(first), stated.rules, reader)
    for step in stated.steps:
        replay.apply(step)
        _require_claim(step, replay)
    wrong = difference(replay.graph, graphs[1])
    if wrong:
        raise CertificateError(f"the steps do not lead to {paths[1]}: {wrong}")
    options = {
        "shapes": {name: list(shape) for name, shape in (shapes or {}).items()},
        "inputs": inputs and str(Path(inputs).absolute()),
        "seconds": seconds,
    }
    return judged(stated.steps, replay, first, last, options, reader)


def sets_of(model: onnx.ModelProto) -> dict[str, int]:
    """Return the versions of the operator sets by domain."""
    return {("" if s.domain == "ai.onnx" else s.domain): s.version for s in model.opset_import}


def require_same_sets(first: onnx.ModelProto, last: onnx.ModelProto) -> None:
    """Require that operators mean the same in both models."""
    one, two = sets_of(first), sets_of(last)
    for domain in one.keys() & two.keys():
        if one[domain] != two[domain]:
            raise CertificateError(f"the models have other versions of the operators of {domain!r}")


def _require_claim(step: Step, replay: Replay) -> None:
    """Require that a step is what it says that it is."""
    adds, makes = bool(step.nodes), bool(step.constants)
    fits = {
        "rule": len(step.same) == 1 and len(step.rules) == 1,
        "rewrite": adds,
        "fold": makes and not adds and bool(step.same),
        "equal": not adds and bool(step.same) and not replay.pairs.get(step.number),
        "same": not adds and bool(step.same),
        "dead": not adds and not makes and not step.same and bool(step.dead),
    }
    if not fits[step.claim]:
        raise CertificateError(f"{step} is not what it claims to be, {step.claim!r}")


def judged(
    steps: Sequence[Step],
    replay: Replay,
    first: onnx.ModelProto,
    last: onnx.ModelProto,
    options: Mapping[str, Any],
    reader: RuleReader | None = None,
) -> list[Verdict]:
    """Say what is known of each step.

    Raises
    ------
    CertificateError
        Values that should be the same differ.
    """
    listed = [(step, pair) for step in steps for pair in replay.pairs.get(step.number, ())]
    found: dict[int, list[tuple[tuple[str, str], Compared]]] = defaultdict(list)
    if listed:
        results = compared(replay, first, last, [pair for _, pair in listed], options)
        for (step, pair), result in zip(listed, results, strict=True):
            found[step.number].append((pair, result))
    branching = [each for each in listed if any(_has_branches(node) for node in each[0].nodes)]
    for forced in (True, False) if branching else ():
        pairs = [pair for _, pair in branching]
        results = compared(replay, first, last, pairs, options, forced)
        for (step, pair), result in zip(branching, results, strict=True):
            result.where = f"where each condition is {forced}, "
            found[step.number].append((pair, result))
    verdicts = [_verdict(step, found[step.number]) for step in steps]
    if reader is not None and replay.matches:
        made = [name for node, _, _ in (*replay.first, *replay.made) for name in node.outputs]
        names = [*filter(None, made), *replay.given_constants, *replay.added]
        facts = reader.facts(union_of(replay, first, last, names))
        for verdict in verdicts:
            if verdict.step.number in replay.matches and not verdict.step.why:
                computed = verdict.state == "recomputed"
                try:
                    why = reader.judge(replay.matches[verdict.step.number], facts, computed)
                except CertificateError as error:
                    raise CertificateError(f"{verdict.step}: {error}") from None
                if not why:
                    verdict.state, verdict.reason = "proven", ""
                elif computed:
                    verdict.reason = why
    return verdicts


def _has_branches(node: Node) -> bool:
    """Whether an If is in an operator, of whose branches inputs may run one only."""
    if node.op == "If":
        return True
    pending = [g for _, a in node.attributes for g in _graphs_of(onnx.AttributeProto.FromString(a))]
    while pending:
        for inner in pending.pop().node:
            if inner.op_type == "If":
                return True
            pending += [graph for each in inner.attribute for graph in _graphs_of(each)]
    return False


def _verdict(step: Step, found: Iterable[tuple[tuple[str, str], Compared]]) -> Verdict:
    reason = ""
    for (old, new), result in found:
        if result.wrong and not step.why:
            raise CertificateError(
                f"{step}: {new!r} is to replace {old!r}, but {result.where}{result.wrong}"
            )
        if result.wrong or (not result.runs and step.why):
            reason = step.why
        elif not result.runs:
            reason = reason or f"{result.where}{old!r} could not be computed"
        elif not result.elements:
            reason = reason or f"{new!r} had no elements"
    return Verdict(step, "believed" if reason else "recomputed", reason)


def main(arguments: Sequence[str]) -> int:
    """Run the command of this module."""
    if len(arguments) == 2 and arguments[0] == "--evaluate":
        _evaluate(Path(arguments[1]))
        return 0
    if len(arguments) != 3:
        sys.stderr.write("usage: certificate_checker.py BEFORE AFTER CERTIFICATE\n")
        return 1
    try:
        verdicts = check(*arguments)
    except (CertificateError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 4
    for verdict in verdicts:
        reason = f": {verdict.reason}" if verdict.reason else ""
        sys.stdout.write(f"{verdict.step}: {verdict.state}{reason}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
