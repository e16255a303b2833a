"""The tensors that each node of a graph reads, writes and returns, also after a pass changed it.

The hidden attribute ``__outputs__`` describes a node's tensors. If a pass moved an edge, tensors
that depend on it are described anew: a view moves to the buffer of its new source, a result to the
memory of its new destination. New nodes get tensors from the operator's rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from passlib.arrays import dtypes
from passlib.errors import FormatError, GraphError, UnsupportedError
from passlib.families.ark import arguments, schema
from passlib.families.ark.document import plain_json
from passlib.families.ark.operators import EFFECTS, OUTPUTS, PARTS, READS, VIRTUAL
from passlib.families.ark.shapes import Operand, infer_result
from passlib.families.ark.tensors import ITEM_SIZES, Box, Tensor, read_tensor
from passlib.graph.attributes import blame, parse_optional_ints
from passlib.graph.node import Node
from passlib.lowering.types import Misfit

_KEYS = ("Id", "DataType", "Shape", "Strides", "Offsets", "Padding", "Buffer")


class Describer:
    """Describes new tensors in the style of one file.

    ``padding`` is the key of a tensor's padding, ``keys`` the order of the keys of a tensor's JSON
    object; ``tensor_id`` and ``buffer_id`` are the first unused Ids.
    """

    def __init__(
        self,
        *,
        padding: str = "PaddedShape",
        keys: Sequence[str] = _KEYS,
        tensor_id: int = 1 << 40,
        buffer_id: int = 1 << 40,
    ) -> None:
        self._padding = padding
        self._keys = [padding if key in ("Padding", "Pads", "PaddedShape") else key for key in keys]
        self._tensor_id = tensor_id
        self._buffer_id = buffer_id

    def renamed(
        self, like: Tensor, *, box: Box | None = None, padded: tuple[int, ...] | None = None
    ) -> Tensor:
        """Describe the memory of ``like`` under a new Id."""
        return self.describe(
            like.dtype, box or like.box, padded or like.padded, like.source["Buffer"]
        )

    def checked(
        self,
        node: Node,
        dtype: str,
        box: Box,
        buffer: Mapping[str, Any],
        padded: tuple[int, ...] | None = None,
    ) -> Tensor:
        """Describe a new tensor of a node and check it; without padding if none is given.

        Raises `GraphError` if its box is not inside its array; `UnsupportedError` if ARK does not
        have the element type.
        """
        if dtype not in ITEM_SIZES:
            raise UnsupportedError(f"{blame(node)}: ARK has no element type {dtype!r}")
        ones = (1,) * len(box.shape)
        padding = ones if self._padding == "Pads" else padded or box.shape
        tensor = self.describe(dtype, box, padding, buffer)
        try:
            return read_tensor(tensor.source, OUTPUTS)
        except FormatError as error:
            raise GraphError(f"{blame(node)}: {error}") from None

    def describe(
        self, dtype: str, box: Box, padded: tuple[int, ...], buffer: Mapping[str, Any]
    ) -> Tensor:
        """Describe a tensor under a new Id."""
        number = self.next_tensor()
        members = {
            "Id": number,
            "DataType": dtype,
            "Shape": list(box.shape),
            "Strides": list(box.strides),
            "Offsets": list(box.offsets),
            self._padding: list(padded),
            "Buffer": buffer,
        }
        source = {key: members[key] for key in self._keys if key in members}
        return Tensor(number, dtype, box, padded, buffer["Id"], buffer["Rank"], source)

    def next_tensor(self) -> int:
        """Return an unused tensor Id."""
        self._tensor_id += 1
        return self._tensor_id - 1

    def buffer(self) -> dict[str, Any]:
        """Describe a new buffer of the file's rank."""
        self._buffer_id += 1
        return {"Id": self._buffer_id - 1, "Rank": -1, "SendTags": [], "RecvTags": []}


def ark_type(node: Node) -> str:
    """Return the ARK type for the attribute ``__dtype__`` of a new variable, by default FP32."""
    text = node.attrs.get("__dtype__")
    if text is None or text == "-1":
        return "FP32"
    names = {"float32": "FP32", "float16": "FP16", "bfloat16": "BF16"}
    try:
        name = dtypes.from_code(int(text)).name
    except (ValueError, UnsupportedError):
        raise UnsupportedError(
            f"{blame(node)}: attribute '__dtype__' (with value {text!r}) is not an element type"
        ) from None
    found = names.get(name, name.upper())
    if found not in ITEM_SIZES:
        raise UnsupportedError(f"{blame(node)}: ARK has no element type {name}")
    return str(found)


@dataclass(frozen=True, eq=False)
class Resolved:
    """A node with its tensors; ``declares`` if it writes to memory that no node declares."""

    node: Node
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    declares: bool = False

    @property
    def virtual(self) -> bool:
        """Whether it declares or views memory and computes nothing."""
        return is_view(self.node)

    @property
    def effects(self) -> bool:
        """Whether it must stay even if its outputs are unused."""
        return self.node.attrs.get(EFFECTS) == "True"


def is_view(node: Node) -> bool:
    """Whether a node computes nothing: a variable, a ``Tensor`` or another virtual operator."""
    return node.is_variable or node.op == schema.TENSOR or node.attrs.get(VIRTUAL) == "True"


class Resolver:
    """Resolves the nodes of one graph, each after its inputs."""

    def __init__(self, describer: Describer | None = None) -> None:
        self._new = describer or Describer()
        self._results: dict[int, tuple[Tensor, ...]] = {}

    def resolve(self, node: Node) -> Resolved:
        """Find the tensors of a node whose producers are resolved.

        Raises `GraphError` if the node does not fit its inputs; `UnsupportedError` if its tensors
        are unknown, and no rule determines them.
        """
        inputs = []
        for entry in node.inputs:
            tensors = self._results[id(entry.node)]
            if entry.index >= len(tensors):
                raise GraphError(
                    f"{blame(node)} uses output {entry.index} of {blame(entry.node)}, which has "
                    f"{len(tensors)}"
                )
            inputs.append(tensors[entry.index])
        given = self._given(node)
        if is_view(node):
            resolved = Resolved(node, tuple(inputs), (), self._view(node, inputs, given))
        else:
            resolved = self._operator(node, inputs, given)
        self._results[id(node)] = resolved.results
        return resolved

    def _given(self, node: Node) -> list[Mapping[str, Any]]:
        text = node.attrs.get(OUTPUTS)
        if text is None:
            return []
        try:
            given = plain_json(text)
        except ValueError as error:
            raise GraphError(f"{blame(node)}: attribute {OUTPUTS!r} is not JSON: {error}") from None
        if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
            raise GraphError(f"{blame(node)}: attribute {OUTPUTS!r} is not an array of tensors")
        return given

    def _whole(self, node: Node, given: Mapping[str, Any]) -> Tensor | None:
        """Read a description if it is complete; only the Id may be missing."""
        if not {"DataType", "Shape", "Strides", "Offsets", "Buffer"} <= given.keys():
            return None
        if "Id" not in given:
            given = {**given, "Id": self._new.next_tensor()}
        try:
            return read_tensor(given, OUTPUTS)
        except FormatError as error:
            raise GraphError(f"{blame(node)}: {error}") from None

    def _view(
        self, node: Node, inputs: list[Tensor], given: list[Mapping[str, Any]]
    ) -> tuple[Tensor, ...]:
        if len(given) > 1:
            raise GraphError(f"{blame(node)}: a view returns one tensor, not {len(given)}")
        described = self._whole(node, given[0]) if given else None
        if not inputs:
            if described is not None:
                self._refuse_restated(node, described)
            return (described or self._declared(node, given[0] if given else {}),)
        parts = self._parts(node, len(inputs))
        buffers = {inputs[i].buffer for i in parts}
        if not parts:
            if described is None:
                raise GraphError(f"{blame(node)}: it views none of its inputs")
            return (described,)
        if len(buffers) > 1:
            which = ", ".join(blame(node.inputs[i].node) for i in parts)
            raise GraphError(
                f"{blame(node)} views one buffer, to which {which} must write, but no longer do"
            )
        source = inputs[parts[0]]
        if described is not None:
            if described.buffer == source.buffer:
                return (described,)
            return (self._moved(node, described, source),)
        return (self._partial(node, source, given[0] if given else {}),)

    def _parts(self, node: Node, count: int) -> list[int]:
        text = node.attrs.get(PARTS)
        if text is None:
            return [0]
        try:
            parts = [int(i) for i in parse_optional_ints(text) if i is not None]
        except ValueError as error:
            raise GraphError(f"{blame(node)}: attribute {PARTS!r}: {error}") from None
        if any(not 0 <= i < count for i in parts):
            raise GraphError(f"{blame(node)} lacks inputs that write to the buffer it views")
        return parts

    def _moved(self, node: Node, described: Tensor, source: Tensor) -> Tensor:
        """Describe a view in the buffer of another source."""
        if described.dtype == source.dtype and described.shape == source.shape:
            return self._new.renamed(source)
        size = source.box.extent * source.item_size
        if source.box.whole and described.box.extent * described.item_size <= size:
            return self._new.describe(
                described.dtype, described.box, described.padded, source.source["Buffer"]
            )
        raise GraphError(
            f"{blame(node)} views {list(described.shape)} of {list(described.box.strides)}, which "
            f"does not fit its new source {blame(node.inputs[0].node)}, {list(source.shape)} of "
            f"{list(source.box.strides)}"
        )

    def _partial(self, node: Node, source: Tensor, given: Mapping[str, Any]) -> Tensor:
        """Describe a view that a pass added."""
        shape = self._sizes(node, given, "Shape")
        if shape is None:
            return self._new.renamed(source)
        strides = self._sizes(node, given, "Strides") or shape
        offsets = self._sizes(node, given, "Offsets") or (0,) * len(shape)
        dtype = given.get("DataType", source.dtype)
        return self._new.checked(node, dtype, Box(shape, strides, offsets), source.source["Buffer"])

    def _refuse_restated(self, node: Node, described: Tensor) -> None:
        """Refuse another shape or type of a tensor, whose strides and users a file states, too."""
        stated = {"__shape__": self._stated_shape(node) not in (None, tuple(described.shape))}
        known = node.attrs.get("__dtype__", "-1") != "-1" and described.dtype != "BYTE"
        stated["__dtype__"] = known and ark_type(node) != described.dtype
        for key, differs in stated.items():
            if differs:
                raise UnsupportedError(
                    f"{blame(node)}: a pass states {key} {node.attrs[key]!r}, but the tensor is "
                    f"{described.dtype} of shape {list(described.shape)}; an ARK file states all "
                    f"tensors, so change {OUTPUTS!r} of it and of the nodes that use it"
                )

    def _stated_shape(self, node: Node) -> tuple[int, ...] | None:
        if "__shape__" not in node.attrs:
            return None
        try:
            sizes = parse_optional_ints(node.attrs["__shape__"])
        except ValueError as error:
            raise GraphError(f"{blame(node)}: attribute '__shape__': {error}") from None
        return tuple(size or 0 for size in sizes) or (1,)

    def _declared(self, node: Node, given: Mapping[str, Any]) -> Tensor:
        """Describe a buffer that a pass added."""
        shape = self._sizes(node, given, "Shape") or self._stated_shape(node)
        if shape is None:
            raise UnsupportedError(
                f"{blame(node)}: the new variable needs a shape, as the attribute '__shape__' or "
                f"as Shape in {OUTPUTS!r}"
            )
        strides = self._sizes(node, given, "Strides") or shape
        offsets = self._sizes(node, given, "Offsets") or (0,) * len(shape)
        dtype = given.get("DataType") or ark_type(node)
        return self._new.checked(node, dtype, Box(shape, strides, offsets), self._new.buffer())

    def _operator(
        self, node: Node, inputs: list[Tensor], given: list[Mapping[str, Any]]
    ) -> Resolved:
        operator = schema.find(node.op)
        count = self._reads(node, operator, len(inputs))
        reads, writes = tuple(inputs[:count]), tuple(inputs[count:])
        described = [self._whole(node, item) for item in given]
        if operator is None:
            if not described or None in described:
                raise UnsupportedError(
                    f"{blame(node)}: the operator is unknown, so it needs its tensors in the "
                    f"attribute {OUTPUTS!r}"
                )
            return Resolved(node, reads, writes, tuple(t for t in described if t is not None))
        if len(reads) != operator.reads or (
            len(writes) < operator.writes and not (operator.writes == 1 and not writes)
        ):
            raise GraphError(
                f"{blame(node)} has {len(reads)} inputs to read and {len(writes)} to write, but "
                f"takes {operator.reads} and {operator.writes}"
            )
        declares = bool(operator.writes) and not writes
        if declares:
            writes = (self._destination(node, reads, given[0] if given else {}),)
        regions = writes if operator.writes else reads
        results = []
        for index in range(operator.results):
            old = described[index] if index < len(described) else None
            region = regions[index]
            if old is not None and old[1:-1] == region[1:-1]:
                results.append(old)
            else:
                results.append(self._new.renamed(region))
        return Resolved(node, reads, writes, tuple(results), declares)

    def _reads(self, node: Node, operator: schema.Operator | None, count: int) -> int:
        text = node.attrs.get(READS)
        if text is None:
            return min(operator.reads, count) if operator is not None else count
        if not text.isdecimal() or int(text) > count:
            raise GraphError(f"{blame(node)} reads {text} of its inputs, but has {count}")
        return int(text)

    def _destination(
        self, node: Node, reads: tuple[Tensor, ...], given: Mapping[str, Any]
    ) -> Tensor:
        """Describe new memory for the result of an operator."""
        operands = [Operand(tensor.dtype, tensor.shape) for tensor in reads]
        try:
            args = arguments.values(arguments.tagged(node))
            result = infer_result(node.op, args, operands)
            padded = _product_padding(node.op, args, reads)
        except Misfit as error:
            raise GraphError(f"{blame(node)}: {error}") from None
        shape = self._sizes(node, given, "Shape") or (None if result is None else result.shape)
        dtype = given.get("DataType") or (
            None if result is None or node.op == "Cast" else result.dtype
        )
        if shape is None or dtype is None:
            missing = "Shape and DataType" if shape is None else "DataType"
            raise UnsupportedError(
                f"{blame(node)}: a new {node.op} needs a destination, or {missing} in the "
                f"attribute {OUTPUTS!r}"
            )
        box = Box(shape, padded or shape, (0,) * len(shape))
        return self._new.checked(node, dtype, box, self._new.buffer(), padded)

    def _sizes(self, node: Node, given: Mapping[str, Any], key: str) -> tuple[int, ...] | None:
        sizes = given.get(key)
        if sizes is None:
            return None
        if not isinstance(sizes, list) or any(type(size) is not int for size in sizes):
            raise GraphError(f"{blame(node)}: {key} in {OUTPUTS!r} is not an array of sizes")
        return tuple(sizes)


def _product_padding(
    op: str, args: Mapping[str, Any], reads: tuple[Tensor, ...]
) -> tuple[int, ...] | None:
    """Compute the padding of a new matrix product from that of its operands."""
    if op != "Matmul" or any("PaddedShape" not in tensor.source for tensor in reads):
        return None
    result = infer_result(op, args, [Operand(tensor.dtype, tensor.padded) for tensor in reads])
    return None if result is None else result.shape
