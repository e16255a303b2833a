"""Small model files with one number replaced by a huge one, each in a child process.

``python tests/support/huge_numbers.py [FIRST [COUNT]]`` checks that loading, inspection,
validation, passes, simplification and saving take neither time nor memory for it, and that no
standard pass fails; see `fuzzing.sweep`.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx

import passlib
from file_mutations import places
from fuzzing import Check, attempt, sweep
from onnx_mutations import HEAD, TEXTS
from passlib.cli import main
from places import DATA

HUGE: Final = (10**9, 2**31, 10**12, 2**63 - 1, 10**20)
SECONDS: Final = 5
"""Processor time for one file."""

GROWTH: Final = 256 << 20
"""Bytes of memory for one file."""

Files = dict[str, bytes]
"""Contents by name; the first one is loaded."""

MODELS = (
    *TEXTS,
    HEAD
    + """(float[2, 4] x) => (float[1] y, float[2, 4] z, int64 n)
    <int64[1] s = {3}, int64 m = {2}, bool t = {1}, int64[1] k = {0}> {
        a = ConstantOfShape(s) y = ReduceSum<keepdims = 1>(a) b = Shape(a) n = Size(a)
        z = Loop(m, t, x) <body = l (int64 i, bool c, float[2, 4] u) => (d, v) {
            d = Identity(c) v = Neg(u) }>
        e, f = Loop(m, t, m) <body = o (int64 i, bool c, int64 u) => (d, v, w) {
            d = Identity(c) v = Add(u, m) w = Identity(i) }>
    }""",
    HEAD
    + """(float[2, 4] x) => (float[2, 2] y, float[2, 2] z, int64[N] r)
    <int64[1] k = {1}, int64[2] e = {2, 4}, float one = {1}> {
        y, z = Split<axis = 1, num_outputs = 2>(x) a = Expand(one, e) b = Tile(a, e) c = Shape(b)
        o = Range(k0, k1, k0) r = Concat<axis = 0>(c, k) k0 = Squeeze(k) k1 = Size(b)
        h = EyeLike<k = 1>(x) t, i = TopK(x, k) u = Unsqueeze(x, k) w = HannWindow(k1)
        q = DepthToSpace<blocksize = 2>(g) g = Reshape(x, e4) e4 = Concat<axis = 0>(k, e, k)
    }""",
)


def _onnx() -> dict[str, Files]:
    found: dict[str, Files] = {}
    for number, text in enumerate(MODELS):
        found[f"onnx {number}"] = {"m.onnx": onnx.parser.parse_model(text).SerializeToString()}
    return found


def _family(name: str, pattern: str, largest: int) -> dict[str, Files]:
    return {
        f"{name} {path.name}": {path.name: path.read_bytes()}
        for path in sorted((DATA / name).glob(pattern))
        if path.stat().st_size < largest and "golden" not in path.name
    }


def _weights() -> dict[str, Files]:
    """Return files of weights, whose words are replaced."""
    small = {"arg:a": np.ones((2, 3), "f4"), "aux:b": np.ones(2, "f2")}
    symbol = (passlib.sym.var("a") + passlib.sym.relu(passlib.sym.var("b"))).tojson().encode()
    with tempfile.NamedTemporaryFile(suffix=".params") as file:
        passlib.nd.save(file.name, {key: passlib.nd.array(value) for key, value in small.items()})
        params = Path(file.name).read_bytes()
    found = {"weights mxnet": {"w-symbol.json": symbol, "w-0000.params": params}}
    for path in sorted((DATA / "dlprim").glob("*.dlp")):
        content = path.read_bytes()
        text = path.with_suffix(".json").read_bytes()
        found[f"weights {path.name}"] = {path.with_suffix(".json").name: text, path.name: content}
    return found


def _numbers_of_json(data: bytes) -> Iterator[Callable[[int], bytes]]:
    """Iterate over functions that put a number at one place of a JSON text."""
    tree = json.loads(data)
    for holder, key in places(tree):
        value = holder[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            spans = [(0, 0)]
        elif isinstance(value, str):
            spans = [found.span() for found in re.finditer(r"(?<![\w.])\d+", value)]
        else:
            continue
        for start, end in spans:
            yield lambda huge, at=(holder, key, value, start, end): _replaced(tree, at, huge)  # type: ignore[misc]


def _replaced(tree: Any, at: tuple[Any, Any, Any, int, int], huge: int) -> bytes:
    holder, key, value, start, end = at
    holder[key] = f"{value[:start]}{huge}{value[end:]}" if isinstance(value, str) else huge
    data = json.dumps(tree).encode()
    holder[key] = value
    return data


def _numbers_of_message(message: Any, root: Any) -> Iterator[Callable[[int], bytes]]:
    for field, value in message.ListFields():
        repeated = hasattr(value, "extend")
        if field.type == field.TYPE_MESSAGE:
            for inner in value if repeated else (value,):
                yield from _numbers_of_message(inner, root)
        elif field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64, field.CPPTYPE_INT32):
            for place in range(len(value)) if repeated else (None,):
                yield lambda huge, at=(message, field.name, place): _set(root, *at, huge)  # type: ignore[misc]
        elif field.name == "raw_data" and message.data_type == onnx.TensorProto.INT64:
            for place in range(0, len(value), 8):
                yield lambda huge, at=(message, place): _set_raw(root, *at, huge)  # type: ignore[misc]


def _set(root: Any, message: Any, name: str, place: int | None, huge: int) -> bytes:
    held = getattr(message, name)
    try:
        if place is None:
            setattr(message, name, huge)
        else:
            before, held[place] = held[place], huge
    except ValueError:  # beyond the field
        huge = 2**31 - 1
        setattr(message, name, huge) if place is None else held.__setitem__(place, huge)
    data: bytes = root.SerializeToString()
    if place is None:
        setattr(message, name, held)
    else:
        held[place] = before
    return data


def _set_raw(root: Any, message: Any, place: int, huge: int) -> bytes:
    held = message.raw_data
    message.raw_data = held[:place] + struct.pack("<q", huge) + held[place + 8 :]
    data: bytes = root.SerializeToString()
    message.raw_data = held
    return data


def _words(data: bytes) -> Iterator[Callable[[int], bytes]]:
    for place in range(0, min(len(data), 256), 4):
        for form in ("<I", "<Q"):
            size = struct.calcsize(form)
            top = (1 << 8 * size) - 1
            yield (
                lambda huge, at=(place, form, size, top): (  # type: ignore[misc]
                    data[: at[0]] + struct.pack(at[1], min(huge, at[3])) + data[at[0] + at[2] :]
                )
            )
    for found in re.finditer(rb"\d+", data[:2000]):
        at = found.span()
        yield lambda huge, at=at: data[: at[0]] + b"%d" % huge + data[at[1] :]  # type: ignore[misc]


def cases() -> Iterator[tuple[str, Callable[[], Files]]]:
    """Iterate over all files: what each is, and how to make it."""
    found = {
        **_onnx(),
        **_family("nnvm", "*.json", 4_000),
        **_family("ark", "*.json", 3_300),
        **_family("dlprim", "*.json", 4_000),
        **_family("compose", "*.json", 3_000),
        **_weights(),
    }
    for kind, files in found.items():
        for name, data in files.items():
            makers: Iterator[Callable[[int], bytes]]
            if name.endswith(".onnx"):
                model = onnx.ModelProto.FromString(data)
                makers = _numbers_of_message(model, model)
            elif name.endswith(".json"):
                makers = _numbers_of_json(data) if "weights" not in kind else iter(())
            else:
                makers = _words(data)
            for number, maker in enumerate(makers):
                for huge in HUGE[:4] if name.endswith(".onnx") else HUGE[::2]:
                    yield (
                        f"{kind}, {name}, number {number} = {huge}",
                        lambda f=files, n=name, m=maker, h=huge: {**f, n: m(h)},  # type: ignore[misc]
                    )


def prepare() -> Check:
    """Make the check of a file."""
    standard = passlib.library.load_standard().passes
    known = list(cases())

    def check(number: int, folder: Path) -> Iterator[str]:
        label, make = known[number]
        for name, data in make().items():
            (folder / name).write_bytes(data)
        path = folder / next(iter(make()))
        target = folder / "out" / path.name
        target.parent.mkdir(exist_ok=True)
        start = time.process_time()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        loaded: list[passlib.Model] = []
        for what, action in {
            "load": lambda: loaded.append(passlib.load(path)),
            "inspect": lambda: _quiet("inspect", str(path)),
            "weights": lambda: _quiet("inspect", str(path), "--weights"),
            "validate": lambda: passlib.validate(path),
            **{
                name: lambda name=name: loaded[0].optimize_for(name).save(target)  # type: ignore[misc]
                for name in standard
            },
            "simplify": lambda: passlib.simplify(loaded[0]).save(target),
        }.items():
            if not loaded and what not in ("load", "inspect", "validate"):
                continue
            for problem in attempt(what, lambda action=action: _strict(action)):  # type: ignore[misc]
                yield f"{label}: {problem}"
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
            if grown > GROWTH:
                before += grown >> 10
                yield f"{label}: {what} grew by {grown:,} bytes"
        if time.process_time() - start > SECONDS:
            yield f"{label}: took more than {SECONDS} s"
        for name in make():
            (folder / name).unlink()

    return check


def _strict(action: Callable[[], object]) -> None:
    """Run what must not fail inside of a pass, which would be a fault of a standard pass."""
    try:
        action()
    except passlib.PassError as error:
        raise AssertionError(str(error)) from error


def _quiet(*words: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        main(list(words))
    if "Traceback" in printed.getvalue():
        raise AssertionError(printed.getvalue())


if __name__ == "__main__":
    sweep(__file__, prepare, sum(1 for _ in cases()), sys.argv[1:])
