"""Checks of single ops: arguments, tensors, communication."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passlib.dialects.json_text import JsonNumber, compact_json
from passlib.dialects.protocol import Problem
from passlib.errors import FormatError
from passlib.families.ark import schema
from passlib.families.ark.arguments import LARGEST_FLOAT, LIMITS
from passlib.families.ark.document import kind, require_key
from passlib.families.ark.operators import FileOp
from passlib.families.ark.shapes import Operand, fits, infer_result, matmul_sizes
from passlib.families.ark.tensors import ITEM_SIZES, MAX_RANK, Tensor, read_tensor, same_memory
from passlib.lowering.types import Misfit


class Report:
    """The problems found so far."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def error(self, place: str, message: str) -> None:
        """Add an error."""
        self.problems.append(Problem("error", place, message))

    def warning(self, place: str, message: str) -> None:
        """Add a warning."""
        self.problems.append(Problem("warning", place, message))

    def expect(self, owner: dict[str, Any], key: str, wanted: type, path: str) -> Any:
        """Return the value of a key; report an unexpected type and return None."""
        try:
            return require_key(owner, key, wanted, path)
        except FormatError as error:
            place, _, message = str(error).partition(": ")
            self.error(place, message)
            return None


def check_args(report: Report, op: FileOp) -> bool:
    """Check the ``Args`` of an op; return whether its operator can use them."""
    args, path = op.place.value["Args"], f"{op.place.path}.Args"
    fine = True
    for name, item in args.items():
        place = f"{path}.{name}"
        if not isinstance(item, dict) or len(item) != 1:
            report.error(place, "expected an object with one type and its value")
            fine = False
            continue
        tag, value = next(iter(item.items()))
        if tag not in schema.ARGUMENT_TYPES:
            report.error(place, f"unknown type {tag!r}")
            fine = False
        elif (problem := _misfit(tag, value, place)) is not None:
            report.error(place, problem)
            fine = False
    for name, tag in _wanted(op).items():
        place = f"{path}.{name}"
        if name not in args:
            report.error(place, f"{op.type} requires this argument")
            fine = False
        elif isinstance(args[name], dict) and tag not in args[name]:
            report.error(place, f"expected the type {tag}")
            fine = False
    if fine and op.type.startswith("Reduce") and schema.find(op.type) is not None:
        axis = args["Axis"]["INT"]
        if axis < 0:  # ARK counts axes from the end when it builds a model, not when it reads one
            report.error(f"{path}.Axis", f"the axis {axis} is negative; files count from the front")
    return fine


def _wanted(op: FileOp) -> dict[str, str]:
    """Return the types of the arguments that an op requires."""
    operator = schema.find(op.type)
    wanted = {} if operator is None else dict(operator.arguments)
    if op.type == "Matmul":
        padding = {
            key for tensor in op.reads for key in ("Pads", "PaddedShape") if key in tensor.source
        }
        oldest = padding == {"Pads"}
        if oldest or any(name in op.place.value["Args"] for name in schema.DERIVED):
            wanted.update(dict.fromkeys(schema.DERIVED, "DIMS"))
    return wanted


def _misfit(tag: str, value: Any, place: str) -> str | None:
    """Check a value against its type; return the problem, if any."""
    if tag == "BOOL":
        return None if isinstance(value, bool) else f"expected true or false, not {kind(value)}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if tag == "FLOAT":
        if number and abs(value) > LARGEST_FLOAT:
            return f"{kind(value)} is out of range"
        return None if number else f"expected a number, not {kind(value)}"
    if tag == "DIMS":
        sizes = isinstance(value, list) and all(type(size) is int for size in value)
        if not sizes or len(value) > MAX_RANK:
            return f"expected at most {MAX_RANK} integers, not {kind(value)}"
        return None
    if tag == "TENSOR":
        try:
            read_tensor(value, place)
        except FormatError as error:
            return str(error).removeprefix(f"{place}: ")
        return None
    if tag == "OFFSET":
        bare = type(value) is int  # as in an example of ARK's documentation
        members = isinstance(value, dict) and all(
            type(value.get(key)) is int for key in ("BufferId", "Value")
        )
        return None if bare or members else "expected BufferId and Value"
    whole = type(value) is int or (number and float(value).is_integer())
    if not whole:
        return f"expected an integer, not {kind(value)}"
    digits = isinstance(value, JsonNumber) and value.text.lstrip("-").isdecimal()
    # A float would round the largest values up.
    exact = int(value.text if digits else value)
    low, high = LIMITS[tag]
    return None if low <= exact < high else f"{kind(value)} is out of range"


def derive(
    reads: Sequence[Tensor], product: Tensor, args: Mapping[str, Any]
) -> dict[str, list[int]]:
    """Compute the derived arguments of a Matmul.

    Raises `Misfit` if the tensors do not fit together.
    ``reads`` are its two operands, ``args`` bare values of its arguments.
    """
    left, right = reads
    _, m, n, k = matmul_sizes(
        left.shape,
        right.shape,
        transpose_left=args["TransposeInput"],
        transpose_right=args["TransposeOther"],
    )
    steps = left.box.strides[-1], product.box.strides[-1], right.box.strides[-1]
    return {
        "InputDimNC": _leading(left),
        "OtherDimNC": _leading(right),
        "ShapeMNK": [m, n, k],
        "StridesACDB": [steps[0], steps[1], steps[1], steps[2]],
    }


def _leading(tensor: Tensor) -> list[int]:
    """Return the first two sizes of a shape that is padded to four dimensions."""
    four = (1,) * (4 - len(tensor.shape)) + tensor.shape
    return list(four[:2])


class TensorChecker:
    """Checks the tensors of one file, each by itself and against its other mentions.

    ``rank`` and ``world`` are None if the file is damaged. In a plan, one Id may stand for several
    boxes.
    """

    def __init__(
        self, report: Report, rank: int | None, world: int | None, *, plan: bool = False
    ) -> None:
        self._report = report
        self._rank = rank
        self._world = world
        self._plan = plan
        self._tensors: dict[int, tuple[Tensor, str]] = {}
        self._boxes: dict[int, set[tuple[Any, ...]]] = {}
        self._shared: set[int] = set()
        self._buffers: dict[int, tuple[Tensor, str]] = {}
        self._makers: dict[int, str] = {}

    def check(self, value: Any, path: str) -> Tensor | None:
        """Check one mention; return the tensor, or None if it cannot be read."""
        try:
            tensor = read_tensor(value, path)
        except FormatError as error:
            self._report.error(path, str(error).removeprefix(f"{path}: "))
            return None
        first = self._tensors.setdefault(tensor.id, (tensor, path))
        boxes = self._boxes.setdefault(tensor.id, set())
        if tensor.identity not in boxes:
            boxes.add(tensor.identity)
            self._alone(tensor, path)
            if len(boxes) > 1:
                self._differs(tensor, *first, path)
        self._buffer(tensor, path)
        return tensor

    def produced(self, results: tuple[Tensor, ...], path: str) -> None:
        """Record the results of an op, which no other op may return."""
        for i, tensor in enumerate(results):
            place = f"{path}.ResultTensors[{i}]"
            first = self._makers.setdefault(tensor.id, place)
            if first != place and tensor.id not in self._shared:
                add = self._report.warning if self._plan else self._report.error
                add(place, f"tensor {tensor.id} is already a result of {first}")

    def _differs(self, tensor: Tensor, first: Tensor, where: str, path: str) -> None:
        """Report a further description of a tensor, once for each tensor if it may differ."""
        if not (self._plan and same_memory(tensor, first)):
            self._report.error(path, f"tensor {tensor.id} is described differently at {where}")
        elif tensor.id not in self._shared:
            self._shared.add(tensor.id)
            self._report.warning(
                path,
                f"tensor {tensor.id} is another box of buffer {tensor.buffer} at {where}; "
                "dependencies follow from the buffer",
            )

    def _alone(self, tensor: Tensor, path: str) -> None:
        report, box, padded = self._report, tensor.box, tensor.padded
        if tensor.dtype not in ITEM_SIZES:
            report.warning(f"{path}.DataType", f"unknown element type {tensor.dtype!r}")
        if "PaddedShape" in tensor.source:
            if any(s > p for s, p in zip(box.shape, padded, strict=True)):
                report.error(
                    f"{path}.PaddedShape",
                    f"{compact_json(padded)} is smaller than Shape {compact_json(box.shape)}",
                )
            elif any(o + p > t for o, p, t in zip(box.offsets, padded, box.strides, strict=True)):
                report.error(
                    f"{path}.PaddedShape",
                    f"{compact_json(padded)} at Offsets {compact_json(box.offsets)} does not lie "
                    f"within Strides {compact_json(box.strides)}",
                )
        elif any(p < 1 or t % p for p, t in zip(padded, box.strides, strict=True)):
            report.error(
                f"{path}.Pads",
                f"Strides {compact_json(box.strides)} are not multiples of {compact_json(padded)}",
            )

    def _buffer(self, tensor: Tensor, path: str) -> None:
        report, place = self._report, f"{path}.Buffer"
        first = self._buffers.setdefault(tensor.buffer, (tensor, place))
        if first[1] != place:
            if first[0].rank != tensor.rank:
                report.error(
                    f"{place}.Rank",
                    f"buffer {tensor.buffer} belongs to rank {tensor.rank} here and to rank "
                    f"{first[0].rank} at {first[1]}",
                )
            if first[0].source["Buffer"] == tensor.source["Buffer"]:
                return
            if first[0].rank == tensor.rank:
                report.warning(
                    place, f"buffer {tensor.buffer} is described differently at {first[1]}"
                )
        if tensor.rank < -1 or (self._world is not None and tensor.rank >= self._world):
            report.error(f"{place}.Rank", f"{tensor.rank} is not a rank of a job of {self._world}")
        for key in ("SendTags", "RecvTags"):
            if key not in tensor.source["Buffer"]:
                report.error(f"{place}.{key}", "the key is missing")
                continue
            for i, pair in enumerate(tensor.source["Buffer"][key]):
                self._tag(pair, f"{place}.{key}[{i}]", tensor.rank)

    def _tag(self, pair: Any, place: str, owner: int) -> None:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or any(type(number) is not int for number in pair)
        ):
            self._report.error(place, "expected a rank and a tag")
            return
        remote = pair[0]
        if remote < -1 or (self._world is not None and remote >= self._world):
            self._report.error(place, f"{remote} is not a rank of a job of {self._world}")
        elif remote == owner or {remote, owner} == {-1, self._rank}:
            self._report.error(place, f"{remote} is the buffer's own rank")


def misfits(
    op: str, args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Yield the problems of the tensors and bare arguments of an op of a known type.

    There are as many tensors as the operator takes.
    """
    operands = [Operand(tensor.dtype, tensor.shape) for tensor in reads]
    try:
        result = infer_result(op, args, operands)
    except Misfit as error:
        yield str(error)
        return
    except (KeyError, TypeError):
        return  # arguments that are missing or of the wrong type are reported elsewhere
    operator = schema.find(op)
    if result is None or operator is None or not operator.writes or not writes:
        return
    if op.startswith("Reduce") and writes[0].id == reads[0].id:
        yield f"a reduction cannot write to tensor {reads[0].id}, which it reads"
    written = Operand(writes[0].dtype, writes[0].shape)
    if not fits(op, result, written):
        yield (
            f"it computes {result.dtype} {list(result.shape)}, which does not fit the "
            f"{written.dtype} {list(written.shape)} that it writes to"
        )


def padding_misfits(
    args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor]
) -> Iterator[str]:
    """Check the ``PaddedShape`` of a matrix product whose shapes fit.

    Tiles of a product reach into the padding, so it follows from that of the operands.
    """
    padded = [Operand(tensor.dtype, tensor.padded) for tensor in reads]
    try:
        result = infer_result("Matmul", args, padded)
    except Misfit as error:
        yield f"the padded operands do not fit: {error}"
        return
    if result is not None and result.shape != writes[0].padded:
        yield (
            f"{list(writes[0].padded)}, but the padding of its operands makes it "
            f"{list(result.shape)}"
        )


def communication_misfits(
    kind: str, args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor], rank: int
) -> Iterator[tuple[str, str]]:
    """Yield places and problems of the buffers and packets of an op that communicates.

    ``args`` are bare values; there are as many tensors as the operator takes. ``rank`` is that of
    the file; -1 if unknown.
    """
    own = {-1, rank}
    if kind in ("Send", "SendPacket"):
        yield from _peer(writes[0], "WriteTensors[0]", own)
        tags = _tags(writes[0], "RecvTags", own)
        sent = _tags(reads[0], "SendTags", {writes[0].rank})
        if not tags or (kind == "Send" and not tags & sent):
            yield "WriteTensors[0].Buffer.RecvTags", "no tag identifies the message that is sent"
    elif kind in ("Recv", "RecvPacket"):
        yield from _peer(reads[0], "ReadTensors[0]", own)
        landing, place = (
            (writes[0], "WriteTensors[0]") if kind == "Recv" else (reads[1], "ReadTensors[1]")
        )
        tags = _tags(landing, "RecvTags", {reads[0].rank})
        sent = _tags(reads[0], "SendTags", own)
        if not tags or (kind == "Recv" and not tags & sent):
            yield f"{place}.Buffer.RecvTags", "no tag identifies the message that is received"
    elif kind in ("RecvReduceSend", "RecvReduceSendPacket"):
        yield from _reduction(kind, args, reads, writes, own)
    if kind == "SendPacket":
        yield from _packet(writes[0], "WriteTensors[0]", reads[0], 1)
    elif kind == "RecvPacket":
        yield from _packet(reads[1], "ReadTensors[1]", writes[0], 1)
    elif kind == "DeviceSync" and reads[0].buffer != writes[0].buffer:
        yield (
            "WriteTensors[0]",
            "a barrier moves no data, so this must be a view of the tensor that it reads",
        )


def _reduction(
    kind: str,
    args: Mapping[str, Any],
    reads: Sequence[Tensor],
    writes: Sequence[Tensor],
    own: set[int],
) -> Iterator[tuple[str, str]]:
    source, scratch, total = reads[0], reads[1], writes[0]
    peers = args["NPeers"]
    if type(peers) is not int:
        return  # reported elsewhere
    if len(writes) != 1 + peers:
        yield ("WriteTensors", f"with {peers} peers {kind} takes {1 + peers}, not {len(writes)}")
        return
    if (source.dtype, source.shape) != (total.dtype, total.shape):
        wanted, found = ((t.dtype, list(t.shape)) for t in (source, total))
        yield "WriteTensors[0]", f"the sum is {wanted[0]} {wanted[1]}, not {found[0]} {found[1]}"
    packets = kind == "RecvReduceSendPacket"
    if packets:
        yield from _packet(scratch, "ReadTensors[1]", source, peers)
    for i, target in enumerate(writes[1:], 1):
        yield from _peer(target, f"WriteTensors[{i}]", own)
        if packets:
            yield from _packet(target, f"WriteTensors[{i}]", source, 1)
        if not _tags(target, "RecvTags", own):
            place = f"WriteTensors[{i}].Buffer.RecvTags"
            yield place, "no tag identifies the message that is sent"


def _peer(tensor: Tensor, place: str, own: set[int]) -> Iterator[tuple[str, str]]:
    if tensor.rank in own:
        yield f"{place}.Buffer.Rank", "must be memory of another rank"


def _packet(packet: Tensor, place: str, carried: Tensor, count: int) -> Iterator[tuple[str, str]]:
    """Check a tensor of packets, which take twice the bytes of their data."""
    size = 2 * math.prod(carried.shape) * carried.item_size * count
    if packet.dtype != "UINT8" or packet.shape != (size,):
        yield place, f"packets must be UINT8 [{size}], not {packet.dtype} {list(packet.shape)}"


def _tags(tensor: Tensor, key: str, ranks: set[int]) -> set[int]:
    """Return the tags of messages to or from some ranks."""
    return {tag for remote, tag in tensor.tags(key) if remote in ranks}
