"""The outputs of all nodes of a written graph, numbered through it, and their types."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import passlib._core as _core
from passlib.arrays import dtypes
from passlib.errors import GraphError, PasslibError, UnsupportedError
from passlib.families.nnvm.lowering import infer_node
from passlib.families.nnvm.reading.file import PLACE, GraphTemplate, named_dtype, visible_attributes
from passlib.families.nnvm.reading.structure import PER_ENTRY, is_per_entry
from passlib.families.nnvm.schema import TVM_OPERATOR, count_outputs
from passlib.families.nnvm.storage import Step, separated
from passlib.graph.attributes import parse_int, parse_optional_ints, parse_position
from passlib.graph.node import VARIABLE, Entry, Node
from passlib.graph.ordering import depth_first_order
from passlib.lowering.types import Shape, TypeSpec


class Arrangement:
    """The nodes of a graph, related to those of the file, in the order of writing.

    Positions are indices of ``nodes``, places are those in a file. ``origins`` has the place of
    each node in the file that was read, -1 for a new one; ``number`` that in the written file.
    ``order`` are positions in the order of writing, ``counts`` numbers of outputs.
    """

    def __init__(self, graph: _core.Graph, template: GraphTemplate) -> None:
        self.template = template
        self.nodes: list[_core.NodeTuple] = graph.nodes()
        self.origins = self._origins()
        self.order = self._order()
        self.number = [0] * len(self.nodes)
        for i, position in enumerate(self.order):
            self.number[position] = i
        self.heads = [(self.number[p], index, version) for p, index, version in graph.heads()]
        self.counts = self._counts()

    @property
    def rewired(self) -> bool:
        """Whether nodes or edges differ from the file."""
        originals = self.template.nodes
        if [self.origins[p] for p in self.order] != list(range(len(originals))):
            return True
        for place, position in enumerate(self.order):
            inputs = [(self.number[p], index) for p, index, _ in self.nodes[position].inputs]
            if inputs != [(entry[0], entry[1]) for entry in originals[place]["inputs"]]:
                return True
        before = [(entry[0], entry[1]) for entry in self.template.root["heads"]]
        return before != [(place, index) for place, index, _ in self.heads]

    def _origins(self) -> list[int]:
        originals = self.template.nodes
        claimed: set[int] = set()
        origins = []
        for node in self.nodes:
            place = parse_position(node.attrs.pop(PLACE, ""))
            if (
                place is None
                or place >= len(originals)
                or place in claimed
                or originals[place]["op"] != node.op
            ):
                place = -1
            else:
                claimed.add(place)
            origins.append(place)
        return origins

    def _order(self) -> list[int]:
        """Order nodes as in the file, and new ones directly before their first user.

        The order that the pass left is ignored, since libraries built with MXNet's own header
        change it. A file with uses before definitions keeps its order unless it has new nodes.
        """
        count, origins = len(self.nodes), self.origins
        wish = sorted(range(count), key=lambda p: origins[p] if origins[p] >= 0 else count + p)
        if self._is_free_order() and -1 not in origins:
            return wish
        needs = [[entry[0] for entry in node.inputs] + node.control_deps for node in self.nodes]
        return depth_first_order(needs, wish)

    def _is_free_order(self) -> bool:
        return any(
            max((entry[0] for entry in node["inputs"]), default=-1) >= place
            or max(node.get("control_deps", ()), default=-1) >= place
            for place, node in enumerate(self.template.nodes)
        )

    def _counts(self) -> list[int]:
        used = [0] * len(self.nodes)
        for node in self.nodes:
            for position, index, _ in node.inputs:
                used[position] = max(used[position], index + 1)
        for place, index, _ in self.heads:
            position = self.order[place]
            used[position] = max(used[position], index + 1)
        counts = []
        for position, node in enumerate(self.nodes):
            op, attributes, place = node.op, node.attrs, self.origins[position]
            if place >= 0:
                count = self.template.outputs[place]
                before = visible_attributes(self.template.nodes[place])
                declared = count_outputs(op, attributes) if before != attributes else 0
                if declared and declared != count_outputs(op, before):
                    count = declared
            else:
                known = 1 if op == VARIABLE else count_outputs(op, attributes)
                count = known or node.num_outputs or 1
            counts.append(max(count, used[position]))
        return counts


UNKNOWN = TypeSpec(None, None)

_SAME_TYPE = ("__nop", "__copy")
"""Functions of TVM's executor whose output has their input's type."""


def new_types(
    node: _core.NodeTuple, inputs: Sequence[TypeSpec], count: int, arrays: Mapping[str, Any]
) -> list[TypeSpec]:
    """Determine the types of the outputs of a new node; ``arrays`` are parameters by name.

    A pass may state them in the attributes ``__shape__`` and ``__dtype__``. Otherwise a variable
    has the type of its array, ``__nop`` and ``__copy`` have that of their input, and those of
    other operators are inferred if ``onnx`` is installed.
    """
    found = [UNKNOWN] * count
    if node.op == VARIABLE:
        array = arrays.get(node.name)
        if isinstance(array, np.ndarray):
            found[0] = TypeSpec(array.dtype, tuple(array.shape))
    elif node.op == TVM_OPERATOR:
        if node.attrs.get("func_name") in _SAME_TYPE and inputs:
            found[0] = inputs[0]
    elif importlib.util.find_spec("onnx") is not None:
        found = _inferred(node, inputs, count)
    first = found[0]
    stated = stated_type(node.attrs)
    shape = first.shape if stated.shape is None else stated.shape
    found[0] = TypeSpec(stated.dtype or first.dtype, shape)
    return found


def _inferred(new: _core.NodeTuple, inputs: Sequence[TypeSpec], count: int) -> list[TypeSpec]:
    variables = [Node(VARIABLE, f"input{i}") for i in range(len(inputs))]
    node = Node(new.op, new.name, new.attrs, [Entry(variable) for variable in variables], count)
    known = {variable.name: spec for variable, spec in zip(variables, inputs, strict=True)}
    try:
        return infer_node(node, known)
    except PasslibError:
        return [UNKNOWN] * count


def stated_type(attributes: Mapping[str, str]) -> TypeSpec:
    """Read the type that a pass states in the attributes of a node."""
    return TypeSpec(
        _stated_dtype(attributes.get("__dtype__")), _stated_shape(attributes.get("__shape__"))
    )


def _stated_dtype(text: str | None) -> np.dtype | None:
    if text is None:
        return None
    try:
        return dtypes.from_code(parse_int(text))
    except (PasslibError, ValueError):
        return named_dtype(text.strip())


def _stated_shape(text: str | None) -> Shape | None:
    if text is None:
        return None
    try:
        return tuple(parse_optional_ints(text))
    except ValueError:
        return None


@dataclass(frozen=True)
class Outputs:
    """All outputs of all nodes of the written graph, numbered through it."""

    old: Sequence[int]
    """Number of each in the file, -1 for a new one."""
    old_count: int
    """Number of outputs in the file."""
    names: Sequence[str]
    """Name of the node of each output."""
    sources: Sequence[int | None]
    """The first input of the node of each output; None for a variable."""
    users: Mapping[int, int]
    """For each used output, the first output of its first user."""
    steps: Sequence[Step]
    """The nodes, in order."""
    heads: Sequence[int]
    rewired: bool
    """Whether nodes, edges or their order differ from the file."""

    @property
    def same(self) -> bool:
        """Whether each output has the same number as in the file."""
        return len(self.old) == self.old_count and all(
            before == now for now, before in enumerate(self.old)
        )


def number_outputs(arrangement: Arrangement) -> Outputs:
    """Assign numbers to the outputs of all nodes, in the order of writing."""
    old_first = [0]
    for count in arrangement.template.outputs:
        old_first.append(old_first[-1] + count)
    nodes, counts, order = arrangement.nodes, arrangement.counts, arrangement.order
    first = _first_outputs(arrangement)
    old: list[int] = []
    names: list[str] = []
    for position in order:
        place = arrangement.origins[position]
        for index in range(counts[position]):
            known = place >= 0 and index < arrangement.template.outputs[place]
            old.append(old_first[place] + index if known else -1)
            names.append(nodes[position].name)
    steps: list[Step] = []
    sources: list[int | None] = [None] * len(old)
    users: dict[int, int] = {}
    for position in order:
        node = nodes[position]
        taken = [first[p] + index for p, index, _ in node.inputs]
        made = range(first[position], first[position] + counts[position])
        steps.append(Step.of(node.op, node.attrs, taken, made))
        for entry in made:
            sources[entry] = taken[0] if taken else None
        for entry in taken:
            users.setdefault(entry, made.start)
    heads = [first[order[place]] + index for place, index, _ in arrangement.heads]
    return Outputs(
        old, old_first[-1], names, sources, users, steps, heads, rewired=arrangement.rewired
    )


def _first_outputs(arrangement: Arrangement) -> list[int]:
    """Return the number of the first output of each node, by position."""
    first = [0] * len(arrangement.nodes)
    total = 0
    for position in arrangement.order:
        first[position] = total
        total += arrangement.counts[position]
    return first


def types_by_output(
    arrangement: Arrangement,
    outputs: Outputs,
    listed: Sequence[TypeSpec],
    arrays: Mapping[str, Any],
) -> list[TypeSpec]:
    """Return the types of all outputs: as listed, and for new nodes from their inputs.

    ``listed`` has the types of the outputs of the file; ``arrays`` are parameters by name.
    """
    first = _first_outputs(arrangement)
    types = [listed[i] if 0 <= i < len(listed) else UNKNOWN for i in outputs.old]
    for position in arrangement.order:
        if arrangement.origins[position] < 0:
            node, count = arrangement.nodes[position], arrangement.counts[position]
            given = [types[first[p] + index] for p, index, _ in node.inputs]
            found = new_types(node, given, count, arrays)
            types[first[position] : first[position] + count] = found
    return types


logger = logging.getLogger(__name__)

_CPU = 1
_UNKNOWN_CODE = -1
_NOT_IN_PLACE = -1

TypeOf = Callable[[int], TypeSpec]
"""Returns the type of a new output."""


def edited(
    original: Mapping[str, Any], current: Mapping[str, Any], outputs: Outputs, type_of: TypeOf
) -> Mapping[str, Any]:
    """Update the attributes of a graph to its nodes.

    Lists with one value for each output keep the values of remaining outputs. New outputs get shape
    and type where known, a buffer of their own, and the device of their node's input. Where nodes
    moved, entries that share a buffer while both are live are separated. A list that a pass rewrote
    in the new length stays unchanged. Raises `GraphError` if a list that a pass wrote has neither
    the new nor the old length; `UnsupportedError` if a list of unknown name would need a value for
    a new output.

    ``original`` is as in the file, ``current`` as the pass left it; the result is ``current``
    itself if nothing changes.
    """
    result = dict(current)
    for name, pair in current.items():
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise GraphError(f"graph attribute {name!r} must be a pair of a type and a value")
        before = original.get(name)
        untouched = before is not None and pair == before
        reference = before if before is not None else pair
        if name not in PER_ENTRY and outputs.same:
            continue
        if not is_per_entry(name, reference, outputs.old_count):
            continue
        values = pair[1]
        if not isinstance(values, list):
            raise GraphError(f"graph attribute {name!r} must hold a list")
        if (not untouched and len(values) == len(outputs.old)) or outputs.same:
            if len(values) != len(outputs.old):
                raise _wrong_length(name, values, outputs)
            continue
        if len(values) != outputs.old_count:
            raise _wrong_length(name, values, outputs)
        kept = [values[old] if old >= 0 else None for old in outputs.old]
        result[name] = [pair[0], kept]
        _fill(name, kept, outputs, type_of)
    _separate(result, original, current, outputs)
    return result if any(result[name] is not current[name] for name in result) else current


def _wrong_length(name: str, values: Sequence[Any], outputs: Outputs) -> GraphError:
    return GraphError(
        f"graph attribute {name!r} has {len(values)} values, but the nodes have "
        f"{len(outputs.old)} outputs (and had {outputs.old_count})"
    )


def _fill(name: str, values: list[Any], outputs: Outputs, type_of: TypeOf) -> None:
    """Set the values of new outputs."""
    new = [entry for entry, old in enumerate(outputs.old) if old < 0]
    if not new:
        return
    if name == "storage_id":
        fresh = max((v for v in values if v is not None), default=-1) + 1
        for i, entry in enumerate(new):
            values[entry] = fresh + i
    elif name in ("shape", "dltype", "dtype"):
        unknown = []
        for entry in new:
            values[entry] = _of_type(name, type_of(entry))
            if values[entry] in ([], "", _UNKNOWN_CODE):
                unknown.append(outputs.names[entry])
        if unknown:
            logger.warning(
                "%s of the outputs of %s is unknown and written so: let the pass set __shape__ and "
                "__dtype__ of these nodes",
                name,
                ", ".join(list(dict.fromkeys(unknown))[:5]),
            )
    elif name == "storage_inplace_index":
        for entry in new:
            values[entry] = _NOT_IN_PLACE
    elif name in _INHERITED:
        _inherit(values, new, outputs, _INHERITED[name])
    else:
        node = outputs.names[new[0]]
        raise UnsupportedError(
            f"node {node!r}: graph attribute {name!r} has a value for each output of a node, and "
            "that of a new one is unknown; let the pass write or remove the attribute"
        )


_INHERITED = {"device_index": _CPU, "storage_scope": "global", "layout": "__undef__"}
"""Default values of attributes that an output inherits from its node's input, or a variable
from its first user.
"""


def _inherit(values: list[Any], new: Sequence[int], outputs: Outputs, default: Any) -> None:
    for entry in new:
        source = outputs.sources[entry]
        values[entry] = values[source] if source is not None else None
    for entry in reversed(new):
        if values[entry] is None:
            user = outputs.users.get(entry)
            values[entry] = values[user] if user is not None else None
    for entry in new:
        if values[entry] is None:
            source = outputs.sources[entry]
            known = values[source] if source is not None else None
            values[entry] = default if known is None else known


def _of_type(name: str, spec: TypeSpec) -> Any:
    """Write a shape or element type; NNVM's mark for an unknown one."""
    if name == "shape":
        shape = spec.shape
        return [] if shape is None or None in shape else [size or 0 for size in shape]
    if spec.dtype is None:
        return "" if name == "dltype" else _UNKNOWN_CODE
    if name == "dltype":
        return spec.dtype.name
    try:
        code = dtypes.code(spec.dtype)
    except UnsupportedError:
        return _UNKNOWN_CODE
    return code if code < _FIRST_DIFFERENT else _NNVM_CODES.get(spec.dtype.name, _UNKNOWN_CODE)


_FIRST_DIFFERENT = 7
"""The first code that means another type in NNVM than in MXNet."""

_NNVM_CODES = {"int16": 7, "uint16": 8, "uint32": 9, "uint64": 10}


def _separate(
    result: dict[str, Any],
    original: Mapping[str, Any],
    current: Mapping[str, Any],
    outputs: Outputs,
) -> None:
    """Separate entries that share a buffer while live, unless the pass chose the buffers."""
    pair = result.get("storage_id")
    if pair is None or not outputs.rewired:
        return
    values = pair[1]
    by_pass = pair is current["storage_id"] and pair != original.get("storage_id")
    if by_pass or not all(type(value) is int for value in values):
        return
    apart = separated(outputs.steps, outputs.heads, values)
    if apart != values:
        result["storage_id"] = [pair[0], apart]
