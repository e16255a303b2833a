"""Operators of a file whose names have one std::hash: time stays in proportion to the file."""

from __future__ import annotations

import json
import random
import time
from itertools import product

import passlib
from sanitized import unless_sanitized

FACTOR = 0xC6A4A7935BD1E995
INVERSE = pow(FACTOR, -1, 1 << 64)
WORD = (1 << 64) - 1
LETTERS = range(1, 128)


def mixed(block: int) -> int:
    """Return what the Murmur hash, libstdc++'s, takes from a block of eight bytes."""
    block = block * FACTOR & WORD
    return (block ^ block >> 47) * FACTOR & WORD


def unmixed(word: int) -> int:
    word = word * INVERSE & WORD
    return (word ^ word >> 47) * INVERSE & WORD


def pair(numbers: random.Random) -> tuple[str, str]:
    """Draw two blocks that differ in the highest bit after mixing, which a second pair cancels."""
    while True:
        step = ((INVERSE << 16) * numbers.choice((1, -1)) + (1 << 63) & WORD).to_bytes(8, "little")
        carry, block = 0, []
        for add in step:
            byte = numbers.choice([b for b in LETTERS if (b + add + carry) % 256 in LETTERS])
            carry = (byte + add + carry) // 256
            block.append(byte)
        word = int.from_bytes(block, "little")
        other = unmixed(mixed(word) ^ 1 << 63).to_bytes(8, "little")
        if all(byte in LETTERS for byte in other):
            return bytes(block).decode(), other.decode()


def colliding(bits: int) -> list[str]:
    numbers = random.Random(5)
    pairs = [pair(numbers) for _ in range(2 * bits)]
    halves = [(a + c, b + d) for (a, b), (c, d) in zip(pairs[::2], pairs[1::2], strict=True)]
    return ["".join(parts) for parts in product(*halves)]


def seconds(names: list[str]) -> float:
    nodes = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": n, "name": f"n{i}", "inputs": [[i, 0, 0]]} for i, n in enumerate(names)]  # type: ignore[dict-item]
    text = json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[len(names), 0, 0]]})
    symbol = passlib.sym.load_json(text)
    start = time.perf_counter()
    assert symbol.list_arguments() == ["x"]
    symbol.tojson()
    return time.perf_counter() - start


@unless_sanitized("takes longer, and not in proportion")
def test_operators_that_collide() -> None:
    bits = 13
    plain = seconds([f"{number:0{16 * bits}}" for number in range(1 << bits)])
    assert seconds(colliding(bits)) < 6 * max(plain, 0.02)
