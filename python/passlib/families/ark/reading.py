"""From the text of an ARK file to a graph."""

from __future__ import annotations

import copyreg
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import passlib._core as _core
from passlib.dialects import json_text
from passlib.dialects.json_text import compact_json
from passlib.errors import FormatError, GraphError, UnsoundFileError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.document import GROUPS, Document, OpPlace, kind, ordered, require_key
from passlib.families.ark.operators import ID, OUTPUTS, PARTS, FileOp, tensors_text
from passlib.families.ark.schema import VARIANTS, Variant
from passlib.families.ark.tensors import Box, Tensor, overlap, read_tensor, same_memory
from passlib.graph.names import NameSource
from passlib.graph.node import VARIABLE


@dataclass(frozen=True)
class Template:
    """The ARK file that a model was read from; nothing changes ``graph``."""

    text: bytes
    graph: _core.Graph
    rank: int
    world_size: int

    @cached_property
    def parts(self) -> Parts:
        """The parts of the file, which are needed for writing a changed model."""
        return replace(read_parts(self.text), graph=self.graph)

    @property
    def document(self) -> Document:
        """The file as parsed."""
        return self.parts.document

    @property
    def ops(self) -> dict[str, FileOp]:
        """The ops of the file, by the ``__id__`` of their nodes."""
        return self.parts.ops

    @cached_property
    def nodes(self) -> list[_core.NodeTuple]:
        """The graph's nodes."""
        return self.graph.nodes()


def find_heads(wired: Wired, rank: int) -> list[Output]:
    """Find the outputs of the model.

    They are the results, and views of results, in memory of this rank that are unused or used only
    by an operator without results. If there are none, they are all unused results, and if there
    are none of those either, all unused tensors.
    """
    used: set[Output] = set()
    recast: set[int] = set()
    for node in range(len(wired.nodes) - 1, -1, -1):
        op, _, _, inputs, count, _, _ = wired.nodes[node]
        if (node, 0) not in used and _is_recast(node, wired):
            recast.add(node)  # a value and its bytes count as one output
            continue
        if count > 0 or (operator := schema.find(op)) is None or operator.writes:
            used.update((source, index) for source, index, _ in inputs)
    computed = _computed(wired)
    free = [
        (node, index)
        for node, tensors in enumerate(wired.tensors)
        for index in range(len(tensors))
        if (node, index) not in used and node not in recast
    ]
    local = [
        (node, index)
        for node, index in free
        if computed[node] and wired.tensors[node][index].rank in (-1, rank)
    ]
    return local or [output for output in free if computed[output[0]]] or free


def _is_recast(node: int, wired: Wired) -> bool:
    """Whether a node is a view of another element type."""
    op = wired.op_of[node]
    inputs = wired.nodes[node].inputs
    if op is None or not op.virtual or not inputs or len(wired.tensors[node]) != 1:
        return False
    source, index, _ = inputs[0]
    return wired.tensors[source][index].dtype != wired.tensors[node][0].dtype


def _computed(wired: Wired) -> list[bool]:
    """Return for each node whether it returns computed values or views of them."""
    computed: list[bool] = []
    for node, (op, _, _, inputs, _, _, _) in enumerate(wired.nodes):
        source = wired.op_of[node]
        if op == VARIABLE:
            computed.append(False)
        elif source is not None and not source.virtual:
            computed.append(True)
        else:
            buffers = {tensor.buffer for tensor in wired.tensors[node]}
            computed.append(
                any(
                    computed[i] and wired.tensors[i][index].buffer in buffers
                    for i, index, _ in inputs
                )
            )
    return computed


def order_units(document: Document, ops: list[FileOp]) -> list[FileOp]:
    """Order the ops so that nodes come after their producers; ops of a node stay together.

    Raises `UnsoundFileError` if nodes need each other in a circle, two have one Id, or a producer
    does not exist.
    """
    position: dict[int, int] = {}
    for number, unit in enumerate(document.units):
        if position.setdefault(unit["Id"], number) != number:
            raise UnsoundFileError(f"Nodes[{number}].Id: two nodes have the Id {unit['Id']}")
    makers = {tensor.id: op.place.unit for op in ops for tensor in op.results}
    needs: list[set[int]] = [set() for _ in document.units]
    for number, unit in enumerate(document.units):
        for i, producer in enumerate(unit["ProducerNodeIds"]):
            if producer not in position:
                raise UnsoundFileError(
                    f"Nodes[{number}].ProducerNodeIds[{i}]: there is no node {producer}"
                )
            needs[number].add(position[producer])
    for op in ops:
        own = op.place.unit
        needs[own].update(
            maker
            for tensor in (*op.reads, *op.writes)
            if (maker := makers.get(tensor.id, own)) != own
        )
    if all(need < number for number, wanted in enumerate(needs) for need in wanted):
        return ops
    try:
        order = ordered(needs, lambda n: f"Nodes[{n}]")
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_unit: list[list[FileOp]] = [[] for _ in document.units]
    for op in ops:
        by_unit[op.place.unit].append(op)
    return [op for number in order for op in by_unit[number]]


_MOST_SOURCES = 2_000_000
"""Edges between the nodes of one file."""


@dataclass(frozen=True)
class Parts:
    """An ARK file, taken apart.

    ``ops``, and ``names`` of their nodes in the graph, are by the ``__id__`` of the nodes.
    ``positions`` has the position of each node of a model file by its Id, ``needs`` for each of
    them the nodes that its ops need, and ``control`` those of these that no tensor shows.
    """

    document: Document
    ops: dict[str, FileOp]
    names: dict[str, str]
    graph: _core.Graph
    positions: dict[int, int]
    needs: list[set[int]]
    control: list[set[int]]


def read_parts(text: bytes) -> Parts:
    """Take a file apart; errors are those of `read`."""
    document = read_document(text)
    ops = read_ops(document)
    ordered = ops if document.plan else order_units(document, ops)
    wired = _Wiring(ordered, document.rank).run()
    positions: dict[int, int] = {}
    needs: list[set[int]] = []
    control: list[set[int]] = []
    if not document.plan:
        positions = {unit["Id"]: i for i, unit in enumerate(document.units)}
        needs, control = _control(document, wired, positions)
    heads = [(node, index, 0) for node, index in find_heads(wired, document.rank)]
    if not heads:
        raise UnsoundFileError(f"{document.units_key}: no op returns or uses a tensor")
    try:
        graph = _core.Graph.build(wired.nodes, heads)
        graph.check()
    except GraphError as error:
        raise UnsoundFileError(str(error)) from error
    by_key = {op.place.key: op for op in ops}
    names = {key: wired.nodes[node].name for key, node in wired.node_of.items()}
    return Parts(document, by_key, names, graph, positions, needs, control)


def _control(
    document: Document, wired: Wired, positions: dict[int, int]
) -> tuple[list[set[int]], list[set[int]]]:
    """Add producers from which a node uses no tensor as its control dependencies.

    The result is ``needs`` and ``control`` of `Parts`.
    """
    units: list[list[int]] = [[] for _ in document.units]
    unit_of: list[int] = []
    for node, op in enumerate(wired.op_of):
        unit_of.append(-1 if op is None else op.place.unit)
        if op is not None:
            units[op.place.unit].append(node)
    needs: list[set[int]] = []
    control: list[set[int]] = []
    steps = 0
    for number, unit in enumerate(document.units):
        shown = {
            unit_of[source]
            for node in units[number]
            for source in _real_sources(node, wired, unit_of)
        } - {-1, number}
        steps += len(shown)
        if steps > _MOST_SOURCES:
            raise UnsupportedError(
                f"{document.units_key}[{number}]: up to here, memory is written in so many parts "
                "that the nodes depend on each other in too many ways"
            )
        hidden = [positions[producer] for producer in unit["ProducerNodeIds"]]
        hidden = [producer for producer in hidden if producer not in shown | {number}]
        for producer in hidden:
            if units[number] and units[producer]:
                wired.nodes[units[number][0]].control_deps.append(units[producer][-1])
        control.append(set(hidden))
        needs.append(shown | control[-1])
    return needs, control


def _real_sources(node: int, wired: Wired, unit_of: list[int]) -> set[int]:
    """Find the nodes of the file that a node uses, directly or through implied nodes."""
    found: set[int] = set()
    pending = [source for source, _, _ in wired.nodes[node].inputs]
    if len(pending) == 1 and unit_of[pending[0]] >= 0:
        return {pending[0]}
    while pending:
        source = pending.pop()
        if source in found:
            continue
        found.add(source)
        if unit_of[source] < 0:
            pending += [further for further, _, _ in wired.nodes[source].inputs]
    return found


_MOST_STEPS = 300_000
"""Comparisons of parts of buffers in one file; real models need a few for each op."""

Output = tuple[int, int]
"""A node, by position in the graph, and one of its outputs."""


@dataclass
class Wired:
    """A graph under construction: for each node its results, and its op unless it is implied.

    ``node_of`` has the position of each op of the file by ``__id__``.
    """

    nodes: list[_core.NodeTuple] = field(default_factory=list)
    tensors: list[tuple[Tensor, ...]] = field(default_factory=list)
    op_of: list[FileOp | None] = field(default_factory=list)
    node_of: dict[str, int] = field(default_factory=dict)


def _input_buffers(ops: Iterable[FileOp], rank: int) -> set[int]:
    """Find the buffers of this rank that are read before they are written.

    Buffers that other ranks write to do not count.
    """
    seen: set[int] = set()
    found: set[int] = set()
    for op in ops:
        if op.virtual:
            continue
        for tensor in op.reads:
            if tensor.buffer not in seen:
                seen.add(tensor.buffer)
                if tensor.rank in (-1, rank) and not tensor.tags("RecvTags"):
                    found.add(tensor.buffer)
        seen.update(tensor.buffer for tensor in op.writes)
    return found


def _ambiguous(ops: Iterable[FileOp]) -> set[int]:
    """Find the Ids that stand for several boxes, or for results of several ops."""
    described: dict[int, Tensor] = {}
    returned: set[int] = set()
    found: set[int] = set()
    for op in ops:
        for tensor in (*op.reads, *op.writes, *op.results):
            if described.setdefault(tensor.id, tensor).identity != tensor.identity:
                found.add(tensor.id)
        for tensor in op.results:
            if tensor.id in returned:
                found.add(tensor.id)
            returned.add(tensor.id)
    return found


class _Wiring:
    """Builds the nodes of a graph from ops, each after those whose results it uses."""

    def __init__(self, ops: list[FileOp], rank: int) -> None:
        self._ops = ops
        self._wired = Wired()
        # An implied node must not take the name of a node that is in the file.
        self._names = NameSource({op.place.value["Name"] for op in ops})
        self._given: set[str] = set()
        self._made: dict[int, Output] = {}
        self._produced = {tensor.id for op in ops for tensor in op.results} - _ambiguous(ops)
        self._inputs = _input_buffers(ops, rank)
        self._root: dict[int, Output] = {}
        self._parts: defaultdict[int, dict[tuple[Box, str], Output]] = defaultdict(dict)
        self._implied: dict[tuple[tuple[Any, ...], tuple[Output, ...]], Output] = {}
        self._steps = 0
        self._views: Counter[int] = Counter()
        self._unproduced: defaultdict[int, dict[tuple[Any, ...], Tensor]] = defaultdict(dict)
        for op in ops:
            for tensor in (*op.reads, *op.writes):
                if tensor.buffer in self._inputs and tensor.id not in self._produced:
                    self._unproduced[tensor.buffer][tensor.identity] = tensor

    def run(self) -> Wired:
        """Raise `UnsupportedError` if a buffer is written in thousands of unnamed parts."""
        for op in self._ops:
            inputs = [self._input(tensor) for tensor in (*op.reads, *op.writes)]
            is_input = op.declares and op.results[0].buffer in self._inputs
            if is_input and op.results[0].buffer in self._root:
                is_input = False
            key = op.place.key
            name = self._name(op.place.value["Name"], op, key)
            operator = VARIABLE if is_input else op.type
            node = self._add(operator, name, op.attributes(), inputs, op.results, op)
            self._wired.node_of[key] = node
            for index, tensor in enumerate(op.results):
                self._made[tensor.id] = node, index
                if not op.virtual:
                    self._written(tensor, (node, index))
            if is_input:
                self._root[op.results[0].buffer] = node, 0
        return self._wired

    def _input(self, tensor: Tensor) -> Output:
        if tensor.id in self._produced:
            if tensor.id not in self._made:
                raise UnsoundFileError(f"tensor {tensor.id} is used before it is computed")
            return self._made[tensor.id]
        root = self._root_of(tensor)
        if root is not None and not self._parts[tensor.buffer]:
            described = self._wired.tensors[root[0]][0]
            if described.identity == tensor.identity:
                return root
        self._spend(tensor)
        parts = self._parts[tensor.buffer].values()
        sources = [output for output in parts if overlap(self._tensor(output), tensor)]
        if root is not None:
            sources.insert(0, root)
        elif len(sources) == 1 and self._tensor(sources[0]).identity == tensor.identity:
            return sources[0]
        found = self._implied.get((tensor.identity, tuple(sources)))
        if found is None:
            count = self._views[tensor.id]
            self._views[tensor.id] += 1
            key = f"t{tensor.id}" + (f".{count}" if count else "")
            name = self._fresh(f"tensor{tensor.id}")
            attrs = {ID: key, OUTPUTS: tensors_text((tensor,))}
            if len(sources) > 1:
                attrs[PARTS] = compact_json(range(len(sources)))
            found = self._add(schema.TENSOR, name, attrs, sources, (tensor,), None), 0
            self._implied[tensor.identity, tuple(sources)] = found
            if len(sources) > 1:
                self._gather(tensor, found)
        return found

    def _root_of(self, tensor: Tensor) -> Output | None:
        """Return the variable for a buffer's content before the model runs, if it is an input."""
        if tensor.buffer not in self._inputs:
            return None
        if tensor.buffer not in self._root:
            described = _covering(list(self._unproduced[tensor.buffer].values()) or [tensor])
            attrs = {ID: f"b{tensor.buffer}", OUTPUTS: tensors_text((described,))}
            name = self._fresh(f"buffer{tensor.buffer}")
            node = self._add(VARIABLE, name, attrs, [], (described,), None)
            self._root[tensor.buffer] = node, 0
        return self._root[tensor.buffer]

    def _tensor(self, output: Output) -> Tensor:
        return self._wired.tensors[output[0]][output[1]]

    def _gather(self, tensor: Tensor, view: Output) -> None:
        """Replace the parts that lie within a view by the view, so that they are listed once."""
        parts = self._parts[tensor.buffer]
        self._spend(tensor)
        for key in list(parts):
            if key[1] == tensor.dtype and _within(key[0], tensor.box):
                del parts[key]
        parts[tensor.box, tensor.dtype] = view

    def _spend(self, tensor: Tensor) -> None:
        """Count the parts that are visited, since a file must not take quadratic time."""
        self._steps += len(self._parts[tensor.buffer])
        if self._steps > _MOST_STEPS:
            raise UnsupportedError(
                f"buffer {tensor.buffer} is written in {len(self._parts[tensor.buffer])} different "
                f"parts before tensor {tensor.id}, too many to find its dependencies"
            )

    def _written(self, tensor: Tensor, output: Output) -> None:
        parts = self._parts[tensor.buffer]
        key = tensor.box, tensor.dtype
        parts.pop(key, None)  # parts are in the order of their last writes
        if tensor.box.whole:
            self._spend(tensor)
            size = tensor.box.extent * tensor.item_size
            for other in list(parts):
                described = self._tensor(parts[other])
                if described.box.extent * described.item_size <= size:
                    del parts[other]
        parts[key] = output

    def _name(self, wish: str, op: FileOp, key: str) -> str:
        if wish and wish not in self._given:
            self._given.add(wish)
            return wish
        if not wish:
            is_buffer = op.declares or (op.virtual and op.results)
            wish = f"buffer{op.results[0].buffer}" if is_buffer else op.type.lower()
            if op.declares:
                return self._fresh(wish)
        return self._fresh(f"{wish}_{key}")

    def _fresh(self, wish: str) -> str:
        name = self._names.fresh(wish)
        self._given.add(name)
        return name

    def _add(
        self,
        op: str,
        name: str,
        attrs: dict[str, str],
        inputs: list[Output],
        tensors: tuple[Tensor, ...],
        source: FileOp | None,
    ) -> int:
        edges = [(node, index, 0) for node, index in inputs]
        self._wired.nodes.append(_core.NodeTuple(op, name, attrs, edges, len(tensors), [], []))
        self._wired.tensors.append(tensors)
        self._wired.op_of.append(source)
        return len(self._wired.nodes) - 1


def _within(inner: Box, outer: Box) -> bool:
    return inner.strides == outer.strides and all(
        b <= a and a + s <= b + t
        for a, s, b, t in zip(inner.offsets, inner.shape, outer.offsets, outer.shape, strict=True)
    )


def _covering(tensors: list[Tensor]) -> Tensor:
    """Return the tensor that covers all others of its buffer, or describe the whole array."""
    largest = max(tensors, key=lambda t: (t.box.extent * t.item_size, t.box.whole))
    if largest.box.whole or all(t[1:-1] == largest[1:-1] for t in tensors):
        return largest
    extents = largest.box.strides
    box = Box(extents, extents, (0,) * len(extents))
    key = "PaddedShape" if "PaddedShape" in largest.source else "Pads"
    padded = extents if key == "PaddedShape" else largest.padded
    changes = {"Shape": box.shape, "Offsets": box.offsets, key: padded}
    source = {k: list(changes.get(k, v)) if k in changes else v for k, v in largest.source.items()}
    source.pop("Id")
    return Tensor(-1, largest.dtype, box, padded, largest.buffer, largest.rank, source)


def read_ops(document: Document) -> list[FileOp]:
    """Read the tensors of all ops, in the order of the file.

    ARK works by buffer. Plans that were split by hand have several boxes under one Id, returned by
    several ops, so in a plan these are accepted. Raises `FormatError` if a tensor is malformed;
    `UnsoundFileError` if two descriptions of one tensor differ, or two ops return it.
    """
    known: dict[int, tuple[Tensor, str]] = {}
    makers: dict[int, str] = {}
    ops = []
    for place in document.ops:
        groups = []
        for group in GROUPS:
            tensors = []
            for i, value in enumerate(place.value[group]):
                tensors.append(_tensor(value, f"{place.path}.{group}[{i}]", known, document.plan))
            groups.append(tuple(tensors))
        for i, tensor in enumerate(groups[2]):
            path = f"{place.path}.ResultTensors[{i}]"
            if makers.setdefault(tensor.id, path) != path and not document.plan:
                raise UnsoundFileError(
                    f"{path}: tensor {tensor.id} is already a result of {makers[tensor.id]}"
                )
        reads, writes, results = groups
        ops.append(FileOp(place, reads, writes, results, document.rank))
    return ops


def _tensor(value: Any, path: str, known: dict[int, tuple[Tensor, str]], plan: bool) -> Tensor:
    number = value.get("Id") if isinstance(value, dict) else None
    first = known.get(number) if type(number) is int else None
    if first is not None and first[0].source == value:
        return first[0]
    tensor = read_tensor(value, path)
    if first is None:
        known[tensor.id] = tensor, path
    elif tensor.identity != first[0].identity and not (plan and same_memory(tensor, first[0])):
        raise UnsoundFileError(f"{path}: tensor {tensor.id} is described differently at {first[1]}")
    return tensor


def read(text: bytes) -> tuple[_core.Graph, Template]:
    """Read a model file or a plan file.

    Raises `FormatError` if the text is not an ARK file; `UnsoundFileError` if it contradicts itself
    or is empty.
    """
    parts = read_parts(text)
    root = parts.document.root
    template = Template(text, parts.graph, root["Rank"], root["WorldSize"])
    template.__dict__["parts"] = parts  # what the cached property would read again
    return parts.graph, template


def _reread(text: bytes) -> Template:
    return read(text)[1]


# JSON objects hold their place in the text, which only the parser can set: pickle the text alone.
copyreg.pickle(Template, lambda template: (_reread, (template.text,)))


_OP_KEYS = ("Type", "Name", "IsVirtual", *GROUPS, "Args")


def read_document(text: bytes) -> Document:
    """Read a file; errors are those of `json_text.parse` and `require_key`."""
    root = json_text.parse(text)
    if not isinstance(root, dict):
        raise FormatError(f"an ARK file is an object, not {kind(root)}")
    plan = "Nodes" not in root and "TaskInfos" in root
    units_key = "TaskInfos" if plan else "Nodes"
    for key in ("Rank", "WorldSize"):
        require_key(root, key, int)
    units = require_key(root, units_key, list)
    if plan:
        require_key(root, "ProcessorGroups", list)
    ops: list[OpPlace] = []
    for number, unit in enumerate(units):
        path = f"{units_key}[{number}]"
        if not isinstance(unit, dict):
            raise FormatError(f"{path}: expected an object, not {kind(unit)}")
        require_key(unit, "Id", int, path)
        for key in () if plan else ("ProducerNodeIds", "ConsumerNodeIds"):
            for i, item in enumerate(require_key(unit, key, list, path)):
                if type(item) is not int:
                    raise FormatError(f"{path}.{key}[{i}]: expected an Id, not {kind(item)}")
        ops += _ops_of(unit, number, path)
    return Document(text, root, _variant(plan, units, ops), plan, units, tuple(ops))


def _ops_of(unit: dict[str, Any], number: int, path: str) -> Iterator[OpPlace]:
    if "Op" in unit and "Ops" not in unit:
        yield _op(unit["Op"], number, 0, str(number), f"{path}.Op")
        return
    for position, op in enumerate(require_key(unit, "Ops", list, path)):
        yield _op(op, number, position, f"{number}.{position}", f"{path}.Ops[{position}]")


def _op(op: Any, unit: int, position: int, key: str, path: str) -> OpPlace:
    if not isinstance(op, dict):
        raise FormatError(f"{path}: expected an object, not {kind(op)}")
    for name, wanted in zip(_OP_KEYS, (str, str, bool, list, list, list, dict), strict=True):
        require_key(op, name, wanted, path)
    if not op["Type"] or op["Type"] == "null":
        raise FormatError(f"{path}.Type: {op['Type']!r} is not an operator type")
    return OpPlace(unit, position, key, path, op)


def _variant(plan: bool, units: list[dict[str, Any]], ops: list[OpPlace]) -> Variant:
    """Detect the variant, which no file states."""
    tensors = [t for op in ops for group in GROUPS for t in op.value[group]]
    if any(isinstance(t, dict) and "Pads" in t and "PaddedShape" not in t for t in tensors):
        name = "v1"
    elif any(op.value["Type"] == "Matmul" and "ShapeMNK" in op.value["Args"] for op in ops):
        name = "v1.5"
    elif not plan and any("Ops" in unit for unit in units):
        name = "v2"
    else:
        name = "v3"
    return VARIANTS[name]
