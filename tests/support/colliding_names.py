"""Names that have one std::hash of libstdc++, which makes a table of them a list."""

from __future__ import annotations

import json
import random
from itertools import product

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
    """Return two to the power of ``bits`` names of one hash."""
    numbers = random.Random(5)
    pairs = [pair(numbers) for _ in range(2 * bits)]
    halves = [(a + c, b + d) for (a, b), (c, d) in zip(pairs[::2], pairs[1::2], strict=True)]
    return ["".join(parts) for parts in product(*halves)]


def named_operators(names: list[str]) -> str:
    """Write a chain of operators of these names as a symbol file."""
    nodes: list[dict[str, object]] = [{"op": "null", "name": "x", "inputs": []}]
    nodes += [{"op": n, "name": f"n{i}", "inputs": [[i, 0, 0]]} for i, n in enumerate(names)]
    return json.dumps({"nodes": nodes, "arg_nodes": [0], "heads": [[len(names), 0, 0]]})
