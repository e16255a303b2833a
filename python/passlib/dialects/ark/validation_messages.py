"""Checks of ops that communicate: who sends what to whom stands in their buffers alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from passlib.dialects.ark.operators import FileOp
from passlib.dialects.ark.report import Report
from passlib.dialects.ark.tensors import Tensor

__all__ = ["check"]


def check(report: Report, op: FileOp, args: dict[str, Any], rank: int | None) -> None:
    """Check one op whose tensors are as many as its operator takes.

    Parameters
    ----------
    report : Report
    op : FileOp
    args : dict
        Bare values of its arguments.
    rank : int or None
        The rank of the file; None where that is damaged.
    """
    own = {-1, rank}
    for key, problem in _problems(op, args, own):
        report.error(f"{op.place.path}.{key}", problem)


def _problems(op: FileOp, args: dict[str, Any], own: set[int | None]) -> Iterator[tuple[str, str]]:
    if op.type in ("Send", "SendPacket"):
        yield from _peer(op.writes[0], "WriteTensors[0]", own)
        tags = _tags(op.writes[0], "RecvTags", own)
        sent = _tags(op.reads[0], "SendTags", {op.writes[0].rank})
        if not tags or (op.type == "Send" and not tags & sent):
            yield "WriteTensors[0].Buffer.RecvTags", "there is no tag under which it is sent"
    elif op.type in ("Recv", "RecvPacket"):
        yield from _peer(op.reads[0], "ReadTensors[0]", own)
        landing, place = (
            (op.writes[0], "WriteTensors[0]")
            if op.type == "Recv"
            else (op.reads[1], "ReadTensors[1]")
        )
        tags = _tags(landing, "RecvTags", {op.reads[0].rank})
        sent = _tags(op.reads[0], "SendTags", own)
        if not tags or (op.type == "Recv" and not tags & sent):
            yield f"{place}.Buffer.RecvTags", "there is no tag under which it is received"
    elif op.type in ("RecvReduceSend", "RecvReduceSendPacket"):
        yield from _reduction(op, args, own)
    if op.type == "SendPacket":
        yield from _packet(op.writes[0], "WriteTensors[0]", op.reads[0], 1)
    elif op.type == "RecvPacket":
        yield from _packet(op.reads[1], "ReadTensors[1]", op.writes[0], 1)
    elif op.type == "DeviceSync" and op.reads[0].buffer != op.writes[0].buffer:
        yield "WriteTensors[0]", "a barrier moves no data, so this is a view of what it reads"


def _reduction(op: FileOp, args: dict[str, Any], own: set[int | None]) -> Iterator[tuple[str, str]]:
    source, scratch, total = op.reads[0], op.reads[1], op.writes[0]
    peers = args["NPeers"]
    if len(op.writes) != 1 + peers:
        yield (
            "WriteTensors",
            f"with {peers} peers {op.type} has {1 + peers}, not {len(op.writes)}",
        )
        return
    if (source.dtype, source.shape) != (total.dtype, total.shape):
        wanted, found = ((t.dtype, list(t.shape)) for t in (source, total))
        yield "WriteTensors[0]", f"it adds up {wanted[0]} {wanted[1]}, not {found[0]} {found[1]}"
    packets = op.type == "RecvReduceSendPacket"
    if packets:
        yield from _packet(scratch, "ReadTensors[1]", source, peers)
    for i, target in enumerate(op.writes[1:], 1):
        yield from _peer(target, f"WriteTensors[{i}]", own)
        if packets:
            yield from _packet(target, f"WriteTensors[{i}]", source, 1)
        if not _tags(target, "RecvTags", own):
            place = f"WriteTensors[{i}].Buffer.RecvTags"
            yield place, "there is no tag under which it is sent"


def _peer(tensor: Tensor, place: str, own: set[int | None]) -> Iterator[tuple[str, str]]:
    if tensor.rank in own:
        yield f"{place}.Buffer.Rank", "the memory of another rank is wanted, and this is the own"


def _packet(packet: Tensor, place: str, carried: Tensor, count: int) -> Iterator[tuple[str, str]]:
    """Check a tensor of packets, which take twice the bytes of the data that they carry."""
    size = 2 * math.prod(carried.shape) * carried.item_size * count
    if packet.dtype != "UINT8" or packet.shape != (size,):
        yield place, f"packets are UINT8 [{size}], not {packet.dtype} {list(packet.shape)}"


def _tags(tensor: Tensor, key: str, ranks: set[int] | set[int | None]) -> set[int]:
    """Give the tags that lead to or come from some ranks."""
    return {tag for remote, tag in tensor.tags(key) if remote in ranks}
