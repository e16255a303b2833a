"""Damaged symbol files, weights and texts for the header, each in a child process.

``python tests/support/file_mutations.py KIND SECONDS [SEED]`` with KIND symbol, npz, h5 or header;
see `fuzzing`. The kind header runs the reader and writer of lib_api.h under AddressSanitizer and
UndefinedBehaviorSanitizer.
"""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import passlib
from fuzzing import attempt, fuzz
from places import DATA, TESTS
from plugin_build import CACHE, HOST, INCLUDE, compile_to

PIECES = (b"", b"\0", b"\xff", b"{", b"[", b"]", b'"', b",", b"-1", b"1e999", b"4294967297",
          b"null", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\x01\0\0\0\0\0\0\0",
          b"[" * 3000, b'{"a":' * 500, b"9" * 5000, b"\\ud800", b"\xed\xa0\x80",
          b"true", b"PK\x01\x02", b"<f8")  # fmt: skip
"""Replacements for bytes of a file."""

VALUES = (None, True, -1, 0, 1, 2**31, 2**63, 1e400, 0.5, "", "null", "\0", "(1, -1)", "[[0,0]]",
          "Convolution", "BatchNorm", [], [0, 0, 0], [-1, 0, 0], [9, 9, 9], [[]], {},
          {"a": 1})  # fmt: skip
"""Replacements for values in JSON."""


def damaged(original: bytes, source: random.Random) -> bytes:
    """Return a file with some of its bytes replaced, left out or repeated."""
    data = bytearray(original)
    for _ in range(source.choice((1, 1, 2, 4, 16))):
        start = source.randrange(len(data) + 1)
        length = source.choice((0, 1, 1, 2, 4, 8, 64, len(data)))
        if source.random() < 0.3:
            other = source.randrange(len(data) + 1)
            data[start:start] = data[other : other + length]
        elif source.random() < 0.3 and start < len(data):
            data[start] ^= 1 << source.randrange(8)
        else:
            data[start : start + length % 65] = source.choice(PIECES)
    return bytes(data)


def rearranged(original: bytes, source: random.Random) -> bytes:
    """Return a JSON text with other values in some places."""
    tree = json.loads(original)
    for _ in range(source.choice((1, 1, 2, 4))):
        all_places = list(places(tree))
        if not all_places:
            break
        holder, key = source.choice(all_places)
        other, other_key = source.choice(all_places)
        action = source.randrange(4)
        if action == 0:
            del holder[key]
        elif action == 1 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(source.choice(VALUES)))
        elif action == 2:
            holder[key] = copy.deepcopy(other[other_key])
        else:
            holder[key] = copy.deepcopy(source.choice(VALUES))
    return json.dumps(tree).encode()


def places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Give each value of a JSON tree, by what holds it and its key there."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict | list):
            for key in list(node) if isinstance(node, dict) else range(len(node)):
                yield node, key
                pending.append(node[key])


def _texts() -> list[bytes]:
    paths = [*(DATA / "compose").glob("*.json"), *(DATA / "mxnet" / "models").glob("*-symbol.json")]
    return [path.read_bytes() for path in sorted(paths) if path.stat().st_size < 30_000]


def _text(originals: list[bytes], number: int) -> bytes:
    source = random.Random(number)
    original = source.choice(originals)
    return (rearranged if source.random() < 0.6 else damaged)(original, source)


def prepare_symbol() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of a symbol file."""
    passlib.library.load_standard()
    originals = _texts()

    def check(number: int, folder: Path) -> Iterator[str]:
        path = folder / "a-symbol.json"
        path.write_bytes(_text(originals, number))
        loaded: list[passlib.symbol.Symbol] = []
        yield from attempt("load", lambda: loaded.append(passlib.sym.load(path)))
        yield from attempt("validate", lambda: passlib.validate(path))
        yield from attempt("model", lambda: passlib.load(path, allow_missing=True))
        for symbol in loaded:
            yield from _use(symbol)

    return check


def _use(symbol: passlib.symbol.Symbol) -> Iterator[str]:
    shapes = dict.fromkeys(symbol.list_arguments()[:1], (1, 3, 32, 32))
    yield from attempt("save", symbol.tojson)
    yield from attempt("types", symbol.infer_type_partial)
    yield from attempt("shapes", lambda: symbol.infer_shape_partial(**shapes))
    yield from attempt("pass", lambda: symbol.optimize_for("mergeEqualNodes").tojson())


def _archives(folder: Path) -> list[bytes]:
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros((0, 4), "f2"), "c": np.array(3)}
    stored, packed = folder / "stored.npz", folder / "packed.npz"
    np.savez(stored, **arrays)
    np.savez_compressed(packed, **arrays, d=np.zeros(10_000))
    sparse = passlib.nd.array(np.eye(4, dtype="f4")).tostype("csr")
    written = folder / "sparse.npz"
    passlib.nd.save(str(written), {"s": sparse, "t": passlib.nd.array(np.ones((2, 2), "f4"))})
    return [path.read_bytes() for path in (stored, packed, written)]


def _repacked(data: bytes, source: random.Random, folder: Path) -> bytes:
    """Damage one member, so that the checksum of the archive is right."""
    path = folder / "members.zip"
    path.write_bytes(data)
    with zipfile.ZipFile(path) as reader:
        members = {name: reader.read(name) for name in reader.namelist()}
    name = source.choice(sorted(members))
    members[name] = damaged(members[name], source)
    with zipfile.ZipFile(path, "w", source.choice((0, 8))) as writer:
        for key, content in members.items():
            writer.writestr(key, content)
    return path.read_bytes()


def prepare_npz() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of a file of arrays."""
    originals: list[bytes] = []

    def check(number: int, folder: Path) -> Iterator[str]:
        originals[:] = originals or _archives(folder)
        source = random.Random(number)
        original = source.choice(originals)
        repacked = source.random() < 0.5 and original[:2] == b"PK"
        path = folder / "a.npz"
        path.write_bytes(
            _repacked(original, source, folder) if repacked else damaged(original, source)
        )
        yield from attempt("load", lambda: _read_all(passlib.nd.load(str(path))))

    return check


def _read_all(arrays: Any) -> None:
    for array in arrays.values() if isinstance(arrays, dict) else arrays:
        array.asnumpy()


def prepare_h5() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of weights in HDF5."""
    networks = [path.with_suffix("") for path in sorted((DATA / "dlprim").glob("*.h5"))]

    def check(number: int, folder: Path) -> Iterator[str]:
        source = random.Random(number)
        network = source.choice(networks)
        (folder / "net.json").write_bytes(network.with_suffix(".json").read_bytes())
        original = network.with_suffix(".h5").read_bytes()
        (folder / "net.h5").write_bytes(damaged(original, source))
        yield from attempt("load", lambda: passlib.load(folder / "net.json"))
        yield from attempt("validate", lambda: passlib.validate(folder / "net.json"))

    return check


def prepare_header() -> Callable[[int, Path], Iterator[str]]:
    """Make the check of a text for the header's readers, that of hosts and that of libraries."""
    flags = (
        "-std=c++17",
        "-O1",
        "-g1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    )
    source = TESTS / "cpp" / "graph_filter.cc"
    headers = (source.with_name("filter.h"), INCLUDE / "lib_api.h")
    newest = max(file.stat().st_mtime for file in (source, *headers))
    programs = {"host": (*HOST, "-DHOST_READER"), "library": ()}
    for name, options in programs.items():
        program = CACHE / "fuzz" / f"graph_filter_{name}"
        if not program.exists() or program.stat().st_mtime < newest:
            compile_to(program, ("g++", *flags, *options, "-I", str(INCLUDE)), [source])
    originals = _texts()

    def check(number: int, folder: Path) -> Iterator[str]:
        texts = [_text(originals, number * 100 + i) for i in range(100)]
        given = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
        first: list[bytes] = []
        for name in programs:
            # AddressSanitizer reserves more addresses than there is memory.
            program = CACHE / "fuzz" / f"graph_filter_{name}"
            command = ["sh", "-c", 'ulimit -Sv unlimited; exec "$0"', program]
            run = subprocess.run(
                command, input=given, capture_output=True, check=False, timeout=300
            )
            answers = run.stdout.split()
            first = first or answers
            if run.returncode or len(answers) != len(texts):
                (folder / "header.json").write_bytes(texts[min(len(answers), 99)])
                yield f"{name}, text {number * 100 + len(answers)}: {run.stderr[:2000]!r}"
            elif answers != first:
                yield f"texts from {number * 100}: the readers do not agree"

    return check


PREPARE = {
    "symbol": prepare_symbol,
    "npz": prepare_npz,
    "h5": prepare_h5,
    "header": prepare_header,
}

if __name__ == "__main__":
    fuzz(__file__, PREPARE[sys.argv[1]], sys.argv[1:])
