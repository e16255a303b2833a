"""From the ops of a file to a graph whose edges are all explicit.

In a file, an op may use a tensor that no op returns: an input of the model, or memory that another
op wrote under another Id (files without virtual ops lack the views that relate the two). The graph
has a variable for the former and an implied ``Tensor`` node for the latter, with an edge from every
op that wrote there. So has every mention of a tensor that is described by several boxes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import passlib._core as _core
from passlib.errors import UnsoundFileError, UnsupportedError
from passlib.families.ark import schema
from passlib.families.ark.json_values import compact_json
from passlib.families.ark.operators import ID, OUTPUTS, PARTS, FileOp, tensors_text
from passlib.families.ark.tensors import Box, Tensor, overlap
from passlib.graph.fresh_names import NameSource
from passlib.graph.node import VARIABLE

_MOST_STEPS = 300_000
"""Comparisons of parts of buffers in one file; real models need a few for each op."""

Output = tuple[int, int]
"""A node, by position in the graph, and one of its outputs."""


@dataclass
class Wired:
    """A graph under construction.

    Attributes
    ----------
    nodes : list of _core.NodeTuple
    tensors : list of tuple of Tensor
        The results of each node.
    op_of : list of (FileOp or None)
        The op of the file for each node; None for implied nodes.
    node_of : dict of str to int
        Position by ``__id__``, of the ops of the file.
    """

    nodes: list[_core.NodeTuple] = field(default_factory=list)
    tensors: list[tuple[Tensor, ...]] = field(default_factory=list)
    op_of: list[FileOp | None] = field(default_factory=list)
    node_of: dict[str, int] = field(default_factory=dict)


def wire(ops: list[FileOp], rank: int) -> Wired:
    """Build the nodes of a graph.

    Parameters
    ----------
    ops : list of FileOp
        Each after the ops whose results it uses.
    rank : int
        The rank of the file.

    Raises
    ------
    UnsupportedError
        A buffer is written in thousands of unnamed parts.
    """
    return _Wiring(ops, rank).run()


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
        sources = self._sources(tensor)
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

    def _sources(self, tensor: Tensor) -> list[Output]:
        parts = self._parts[tensor.buffer]
        self._spend(tensor)
        return [output for output in parts.values() if overlap(self._tensor(output), tensor)]

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
