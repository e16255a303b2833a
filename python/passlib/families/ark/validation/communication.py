"""Rules for ops that communicate; only their buffers state sender, receiver and tag."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from passlib.families.ark.tensors import Tensor


def communication_misfits(
    kind: str, args: Mapping[str, Any], reads: Sequence[Tensor], writes: Sequence[Tensor], rank: int
) -> Iterator[tuple[str, str]]:
    """Check the buffers and packets of an op that communicates.

    Parameters
    ----------
    kind : str
        Its type.
    args : mapping
        Bare values of its arguments.
    reads, writes : sequence of Tensor
        As many as the operator takes.
    rank : int
        The rank of the file; -1 if unknown.

    Yields
    ------
    place : str
        A path within the op.
    problem : str
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
        yield (
            "WriteTensors",
            f"with {peers} peers {kind} takes {1 + peers}, not {len(writes)}",
        )
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
