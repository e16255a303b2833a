from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import passlib
from ark_builder import Builder, Handle
from ark_files import FILES
from passlib.errors import GraphError, UnsupportedError
from passlib.families.ark import lower_ranks
from passlib.runtime.session import Session

SIZE = 6


def run(paths: list[Path], seed: int = 0) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Run the files of all ranks; return inputs and outputs by rank."""
    lowered = lower_ranks([passlib.model.load(path).symbol for path in paths])
    session = Session(lowered)
    rng = np.random.default_rng(seed)
    types = {n: v for v in lowered.value_of.values() if (n := v.name) in lowered.input_names}
    feeds = {
        name: rng.uniform(-1, 1, types[name].shape).astype(types[name].dtype)
        for name in lowered.input_names
    }
    return list(feeds.values()), session.run(feeds)


def ring(rank: int, world: int, path: Path, scale: float = 1.0) -> Path:
    """An all-reduce as ARK's planner composes it: a copy, and world - 1 steps in a ring."""
    builder = Builder(rank, world)
    sends = [[(rank + i) % world, 100 * rank + i] for i in range(1, world)]
    source = builder.tensor("FP32", (SIZE,), name="x", SendTags=sends)
    scaled = source
    total = builder.op("Copy", [scaled], builder.tensor("FP32", (SIZE,)))
    for i in range(1, world):
        to, sender = (rank + i) % world, (rank - i) % world
        target = builder.tensor("FP32", (SIZE,), Rank=to, RecvTags=[[-1, 100 * rank + i]])
        (sent,) = builder.raw("Send", [source], [target], 1)
        (done,) = builder.raw("SendDone", [sent], [], 1)
        tag = 100 * sender + i
        mine = builder.tensor("FP32", (SIZE,), RecvTags=[[sender, tag]])
        ready = builder.view(mine, (SIZE,), after=[done])
        remote = builder.tensor("FP32", (SIZE,), Rank=sender, SendTags=[[-1, tag]])
        (received,) = builder.raw("Recv", [remote], [ready], 1)
        total = builder.op("Add", [total, received], total)
    builder.op("ScalarMul", [total], builder.tensor("FP32", (SIZE,)), Factor=scale)
    return builder.write(path)


@pytest.mark.parametrize("world", [2, 3, 5])
def test_ring(world: int, tmp_path: Path) -> None:
    paths = [ring(rank, world, tmp_path / f"{rank}.json") for rank in range(world)]
    for path in paths:
        problems = passlib.dialects.find("ark").validate(path)
        assert [p for p in problems if p.severity == "error"] == []
    inputs, outputs = run(paths)
    assert len(outputs) == world
    for output in outputs:
        np.testing.assert_allclose(output, np.sum(inputs, 0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_ranks_in_any_order(order: tuple[int, int], tmp_path: Path) -> None:
    paths = [ring(rank, 2, tmp_path / f"{rank}.json", float(rank + 1)) for rank in order]
    inputs, outputs = run(paths)
    for rank, output in zip(order, outputs, strict=True):
        np.testing.assert_allclose(output, np.sum(inputs, 0) * (rank + 1), rtol=1e-5)


@pytest.mark.parametrize("form", ["full", "compressed"])
def test_genuine_exchange(form: str) -> None:
    """One program, with rank 0 in the format of May 2024 and rank 1 in that of September."""
    paths = [
        FILES / f"gen_seed-sendrecv_rank0.{form}.json",
        FILES / f"gen_head-sendrecv_rank1.{form}.json",
    ]
    (x, y), (first, second) = run(paths)
    np.testing.assert_allclose(second, y + np.float16(1), rtol=1e-2)
    assert first.shape == x.shape
    assert np.isfinite(first).all()


def packet_rank(rank: int, world: int, path: Path) -> Path:
    """Each rank sends its data as packets, reduces, and stores the sum in all others."""
    builder = Builder(rank, world)
    peers = [peer for peer in range(world) if peer != rank]
    source = builder.tensor("FP32", (SIZE,), name="x")
    for peer in peers:
        target = builder.tensor("UINT8", (8 * SIZE,), Rank=peer, RecvTags=[[-1, 1]])
        builder.raw("SendPacket", [source], [target], 1, Flag=1)
    scratch = builder.tensor(
        "UINT8", (8 * SIZE * len(peers),), RecvTags=[[peer, 1] for peer in peers]
    )
    out = builder.tensor("FP32", (SIZE,))
    remotes: list[Handle] = [
        builder.tensor("UINT8", (8 * SIZE,), Rank=peer, RecvTags=[[-1, 2]]) for peer in peers
    ]
    (reduced,) = builder.raw(
        "RecvReduceSendPacket",
        [source, scratch],
        [out, *remotes],
        1,
        Flag=1,
        NPeers=len(peers),
        Rank=rank,
    )
    builder.op("ScalarMul", [reduced], builder.tensor("FP32", (SIZE,)), Factor=2.0)
    for peer in peers:
        landing = builder.tensor("UINT8", (8 * SIZE,), RecvTags=[[peer, 2]])
        remote = builder.tensor("FP32", (SIZE,), Rank=peer)
        builder.raw("RecvPacket", [remote, landing], [builder.tensor("FP32", (SIZE,))], 1, Flag=1)
    return builder.write(path)


@pytest.mark.parametrize("world", [2, 4])
def test_packets(world: int, tmp_path: Path) -> None:
    paths = [packet_rank(rank, world, tmp_path / f"{rank}.json") for rank in range(world)]
    inputs, outputs = run(paths)
    total = np.sum(inputs, 0)
    assert len(outputs) == world * world
    for number, output in enumerate(outputs):
        factor = 2 if number % world == 0 else 1
        np.testing.assert_allclose(output, total * factor, rtol=1e-5, atol=1e-6)


def shared_memory_rank(rank: int, world: int, path: Path) -> Path:
    """Data goes directly to memory of other ranks; barriers mark its arrival."""
    builder = Builder(rank, world)
    peers = [peer for peer in range(world) if peer != rank]
    source = builder.tensor("FP32", (SIZE,), name="x")
    sent = []
    for peer in peers:
        target = builder.tensor("FP32", (SIZE,), Rank=peer, RecvTags=[[-1, 5]])
        sent += builder.raw("Send", [source], [target], 1)
    first = builder.view(source, (SIZE,), after=sent)
    (ready,) = builder.raw("DeviceSync", [first], [first], 1, PeerNum=world - 1, Rank=rank)
    scratch = builder.tensor("FP32", (SIZE * len(peers),), RecvTags=[[p, 5] for p in peers])
    out = builder.tensor("FP32", (SIZE,), RecvTags=[[peer, 6] for peer in peers])
    remotes = [builder.tensor("FP32", (SIZE,), Rank=p, RecvTags=[[-1, 6]]) for p in peers]
    (reduced,) = builder.raw(
        "RecvReduceSend", [ready, scratch], [out, *remotes], 1, NPeers=len(peers), Rank=rank
    )
    (end,) = builder.raw("DeviceSync", [reduced], [reduced], 1, PeerNum=world - 1, Rank=rank)
    builder.op("Copy", [end], builder.tensor("FP32", (SIZE,)))
    return builder.write(path)


@pytest.mark.parametrize("world", [2, 3])
def test_barriers(world: int, tmp_path: Path) -> None:
    paths = [shared_memory_rank(rank, world, tmp_path / f"{rank}.json") for rank in range(world)]
    inputs, outputs = run(paths)
    for output in outputs:
        np.testing.assert_allclose(output, np.sum(inputs, 0), rtol=1e-5, atol=1e-6)


def test_one_rank_alone_is_refused(tmp_path: Path) -> None:
    path = ring(0, 2, tmp_path / "0.json")
    model = passlib.model.load(path)
    with pytest.raises(UnsupportedError, match=r"'send' \(Send\).*lower_ranks"):
        model(np.zeros(SIZE, np.float32))
    with pytest.raises(GraphError, match=r"ranks \[0\] in jobs of \[2\]"):
        lower_ranks([model.symbol])
    with pytest.raises(GraphError, match=r"ranks \[0, 0\]"):
        lower_ranks([model.symbol, model.symbol])


@pytest.mark.parametrize("writes", [True, False])
def test_memory_of_another_rank(writes: bool, tmp_path: Path) -> None:
    """Only messages access it; anything else is refused."""
    builder = Builder(0, 2)
    own, other = builder.tensor("FP32", (SIZE,)), builder.tensor("FP32", (SIZE,), Rank=1)
    builder.op("Exp", [own if writes else other], other if writes else own)
    model = passlib.model.load(builder.write(tmp_path / "0.json"))
    with pytest.raises(UnsupportedError, match=r"'exp' \(Exp\): uses memory of rank 1"):
        model.run({name: np.zeros(SIZE, np.float32) for name in model.inputs})
    peer = passlib.model.load(ring(1, 2, tmp_path / "1.json"))
    with pytest.raises(UnsupportedError, match=r"'exp' \(Exp\): uses memory of rank 1"):
        lower_ranks([model.symbol, peer.symbol])


def test_ranks_that_wait_forever(tmp_path: Path) -> None:
    symbols = []
    for rank in range(2):
        builder = Builder(rank, 2)
        remote = builder.tensor("FP32", (SIZE,), Rank=1 - rank, SendTags=[[-1, 3]])
        mine = builder.tensor("FP32", (SIZE,), RecvTags=[[1 - rank, 3]])
        builder.raw("Recv", [remote], [mine], 1)
        symbols.append(passlib.model.load(builder.write(tmp_path / f"{rank}.json")).symbol)
    with pytest.raises(GraphError, match=r"wait for messages that no rank sends.*'recv'"):
        lower_ranks(symbols)


@pytest.mark.parametrize("pair", [[[1], 3], [1, {}], [1, 1.5], [True, 3], [1]])
def test_tags_that_are_none(pair: Any, tmp_path: Path) -> None:
    """They are findings of `validate`, and no message has them."""
    builder = Builder(0, 2)
    target = builder.tensor("FP32", (4,), Rank=1, RecvTags=[pair, [-1, 3]])
    builder.raw("Send", [builder.tensor("FP32", (4,), SendTags=[[1, 3], pair])], [target], 1)
    builder.op("Copy", [builder.tensor("FP32", (4,), RecvTags=[pair])], target)
    path = builder.write(tmp_path / "0.json")
    problems = passlib.validate(path)
    assert {p.place.rpartition(".")[2] for p in problems if "a rank and a tag" in p.message} == {
        "RecvTags[0]",
        "SendTags[1]",
    }
    with pytest.raises(GraphError, match="ranks"):
        lower_ranks([passlib.load(path).symbol])


def test_message_of_another_size(tmp_path: Path) -> None:
    symbols = []
    sender = Builder(0, 2)
    target = sender.tensor("FP32", (4,), Rank=1, RecvTags=[[-1, 3]])
    sender.raw("Send", [sender.tensor("FP32", (4,), SendTags=[[1, 3]])], [target], 1)
    receiver = Builder(1, 2)
    remote = receiver.tensor("FP32", (5,), Rank=0, SendTags=[[-1, 3]])
    receiver.raw("Recv", [remote], [receiver.tensor("FP32", (5,), RecvTags=[[0, 3]])], 1)
    for number, builder in enumerate((sender, receiver)):
        symbols.append(passlib.model.load(builder.write(tmp_path / f"{number}.json")).symbol)
    with pytest.raises(GraphError, match=r"expects FP32 \[5\], but receives FP32 \[4\]"):
        lower_ranks(symbols)


def test_tags_of_several_ops_on_a_buffer(tmp_path: Path) -> None:
    """The tag of an op is the tag that both its buffers have."""
    sender, receiver = Builder(0, 2), Builder(1, 2)
    names, tags = ("x", "y"), (5, 4)
    target = sender.tensor("FP32", (SIZE,), Rank=1, RecvTags=[[-1, 4], [-1, 5]])
    remote = receiver.tensor("FP32", (SIZE,), Rank=0, SendTags=[[-1, 4], [-1, 5]])
    for name, tag in zip(names, tags, strict=True):
        source = sender.tensor("FP32", (SIZE,), name=name, SendTags=[[1, tag]])
        (target,) = sender.raw("Send", [source], [target], 1)
    for factor, tag in zip((1.0, 10.0), tags, strict=True):
        mine = receiver.tensor("FP32", (SIZE,), RecvTags=[[0, tag]])
        (got,) = receiver.raw("Recv", [remote], [mine], 1)
        receiver.op("ScalarMul", [got], receiver.tensor("FP32", (SIZE,)), Factor=factor)
    paths = [b.write(tmp_path / f"{b.rank}.json") for b in (sender, receiver)]
    (x, y), (*_, first, second) = run(paths)
    np.testing.assert_allclose(first, x)
    np.testing.assert_allclose(second, y * 10, rtol=1e-6)


def test_inputs_that_become_constants(tmp_path: Path) -> None:
    symbols = [
        passlib.model.load(ring(rank, 2, tmp_path / f"{rank}.json")).symbol for rank in range(2)
    ]
    weight = np.arange(SIZE, dtype=np.float32)
    lowered = lower_ranks(symbols, params={"rank1/x": weight})
    assert lowered.input_names == ("rank0/x",)
    for output in Session(lowered).run({"rank0/x": weight}):
        np.testing.assert_array_equal(output, weight * 2)
